"""The loop guard's thresholds, how they fit together, and what ends a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.ids import Kind
from openfang.core.tools import Tool
from openfang.guard.loops import PASS, Block, LoopLimits, Loops, Pass, Verdict, Warn, call_key

ECHO = Tool(id="builtin:echo", kind=Kind.BUILTIN, source="builtin", name="echo")
STATUS = replace(ECHO, id="builtin:status", name="status", polls=True)


class Run:
    """One run: `calls` asks before, and reports the result after unless it was blocked."""

    def __init__(self, loops: Loops | None = None, name: str | None = "run") -> None:
        self.loops = loops or Loops()
        self.name = name
        self.after: list[Pass | Warn] = []

    def call(self, argument: str = "a", result: str | None = "same", tool: Tool = ECHO) -> Verdict:
        key = call_key(tool.id, argument.encode())
        verdict = self.loops.before(self.name, tool, key)
        if not isinstance(verdict, Block):
            digest = None if result is None else result.encode()
            self.after.append(self.loops.after(self.name, key, digest))
        return verdict


def word(verdict: Verdict) -> str:
    return verdict.rule if isinstance(verdict, Block) else type(verdict).__name__.lower()


@pytest.mark.requirement("C10.1")
def test_direct_calls_are_never_a_loop() -> None:
    run = Run(name=None)
    assert {word(run.call()) for _ in range(100)} == {"pass"}
    assert run.loops.size == 0


@pytest.mark.requirement("C10.1")
def test_runs_do_not_know_of_each_other() -> None:
    loops = Loops()
    for number in range(20):
        assert Run(loops, f"run {number}").call() == PASS


@pytest.mark.requirement("C10.2")
def test_identical_calls_without_a_result_warn_at_three_and_block_at_five() -> None:
    run = Run()
    words = [word(run.call(result=None)) for _ in range(6)]
    assert words == ["pass", "pass", "warn", "warn", "identical_calls", "identical_calls"]


@pytest.mark.requirement("C10.2")
def test_identical_calls_sent_side_by_side_are_counted_before_any_answer() -> None:
    loops, key = Loops(), call_key(ECHO.id, b"{}")
    words = [word(loops.before("run", ECHO, key)) for _ in range(5)]
    assert words == ["pass", "pass", "warn", "warn", "identical_calls"]


@pytest.mark.requirement("C10.2")
def test_a_poll_has_three_times_the_patience() -> None:
    run = Run()
    words = [word(run.call(result=None, tool=STATUS)) for _ in range(15)]
    assert words == ["pass"] * 8 + ["warn"] * 6 + ["identical_calls"]


@pytest.mark.requirement("C10.2")
def test_a_changed_result_resets_the_count() -> None:
    run = Run()
    words = [word(run.call(result=f"result {number // 2}")) for number in range(60)]
    assert set(words) <= {"pass", "warn"}


@pytest.mark.requirement("C10.2")
def test_other_arguments_or_another_tool_are_another_call() -> None:
    assert call_key("builtin:a", b"{}") != call_key("builtin:b", b"{}")
    assert call_key("builtin:a", b"{}") != call_key("builtin:a", b"[]")
    run = Run()
    assert {word(run.call(argument=str(n), result=str(n))) for n in range(100)} == {"pass"}


@pytest.mark.requirement("C10.3")
def test_the_second_same_result_warns_and_after_the_third_the_call_is_blocked() -> None:
    run = Run()
    words = [word(run.call()) for _ in range(5)]
    assert words == ["pass", "pass", "warn", "identical_outcome", "identical_outcome"]
    assert [type(answer) for answer in run.after] == [Pass, Warn, Warn]


@pytest.mark.requirement("C10.3")
def test_a_poll_may_hear_the_same_answer_nine_times() -> None:
    run = Run()
    words = [word(run.call(tool=STATUS)) for _ in range(10)]
    assert words == ["pass"] * 8 + ["warn", "identical_outcome"]
    assert [type(answer) for answer in run.after] == [Pass] * 5 + [Warn] * 4


@pytest.mark.requirement("C10.3")
def test_a_b_a_b_a_b_is_blocked_at_its_sixth_call() -> None:
    run = Run()
    words = [word(run.call(argument=argument)) for argument in "ABABAB"]
    assert words[:4] == ["pass"] * 4
    assert words[5] == "call_pattern"


@pytest.mark.requirement("C10.3")
def test_a_b_c_three_times_is_blocked_at_its_ninth_call() -> None:
    run = Run()
    words = [word(run.call(argument=argument)) for argument in "ABCABCABC"]
    assert "call_pattern" not in words[:8]
    assert words[8] == "call_pattern"


@pytest.mark.requirement("C10.3")
def test_a_pattern_is_no_loop_while_the_answers_move() -> None:
    run = Run()
    words = [word(run.call(argument=a, result=f"{n}")) for n, a in enumerate("AB" * 20)]
    assert set(words) == {"pass"}


@pytest.mark.requirement("C10.3")
def test_a_pattern_with_a_poll_in_it_needs_nine_rounds() -> None:
    run = Run(Loops(LoopLimits(block_calls=99, block_outcomes=99, stale_calls=99)))
    words: list[str] = []
    for _ in range(9):
        words.append(word(run.call(argument="log", result="x")))
        words.append(word(run.call(argument="job", result="y", tool=STATUS)))
    assert "call_pattern" not in words[:17]
    assert words[17] == "call_pattern"


@pytest.mark.requirement("C10.3")
def test_almost_a_pattern_is_none() -> None:
    run = Run()
    assert "call_pattern" not in {word(run.call(argument=a)) for a in "ABABBABAACBCBDAB"}


@pytest.mark.requirement("C10.3")
def test_thirty_calls_without_progress_end_the_run() -> None:
    run = Run()
    run.call(argument="first")
    for number in range(30):
        verdict = run.call(argument=f"{number}")
        assert not isinstance(verdict, Block)
    verdict = run.call(argument="new", result="new")
    assert isinstance(verdict, Block)
    assert verdict.rule == "no_progress"
    assert word(run.call(argument="newer", result="newer")) == "no_progress"


@pytest.mark.requirement("C10.3")
def test_one_new_result_is_progress() -> None:
    run = Run()
    for number in range(29):
        run.call(argument=f"{number}")
    run.call(argument="x", result="new")
    for number in range(30, 59):
        assert word(run.call(argument=f"{number}")) == "pass"


@pytest.mark.requirement("C10.3")
def test_the_same_text_from_another_tool_is_progress() -> None:
    run = Run()
    for number in range(60):
        tool = replace(ECHO, id=f"builtin:echo{number}")
        assert word(run.call(argument=f"{number}", tool=tool)) == "pass"


@pytest.mark.requirement("C10.3")
def test_calls_under_way_are_not_calls_without_progress() -> None:
    loops = Loops()
    keys = [call_key(ECHO.id, str(number).encode()) for number in range(200)]
    assert {word(loops.before("session", ECHO, key)) for key in keys} == {"pass"}
    for number, key in enumerate(keys):
        loops.after("session", key, str(number).encode())


@pytest.mark.requirement("C10.3")
def test_a_model_that_ignores_its_blocks_is_ended() -> None:
    run = Run()
    words = [word(run.call()) for _ in range(40)]
    assert words[-1] == "no_progress"


@pytest.mark.requirement("C10.3")
def test_an_ended_run_is_not_revived_by_a_late_answer() -> None:
    run = Run()
    late = call_key(ECHO.id, b"late")
    run.loops.before("run", ECHO, late)
    for number in range(31):
        run.call(argument=f"{number}")
    run.loops.after("run", late, b"something new")
    assert word(run.call(argument="z")) == "no_progress"


@pytest.mark.requirement("C10.4")
def test_thresholds_are_configuration() -> None:
    run = Run(Loops(LoopLimits(warn_calls=1, block_calls=2)))
    assert [word(run.call(result=None)) for _ in range(2)] == ["warn", "identical_calls"]


@pytest.mark.requirement("C10.4")
def test_a_block_says_what_to_do_instead() -> None:
    run = Run()
    blocks = [verdict for verdict in (run.call() for _ in range(40)) if isinstance(verdict, Block)]
    rest = [block for block in blocks if "answer with what you have" not in block.text]
    assert {block.rule for block in rest} == {"no_progress"}


@pytest.mark.requirement("C10.4")
def test_looking_counts_nothing_and_says_what_would_happen() -> None:
    run = Run()
    key = call_key(ECHO.id, b"a")
    assert run.loops.look("run", ECHO, key) == PASS
    for _ in range(4):
        run.call(result=None)
    for _ in range(3):
        assert word(run.loops.look("run", ECHO, key)) == "identical_calls"
    assert word(run.call(result=None)) == "identical_calls"


@pytest.mark.requirement("C10.4")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["x", "y", None])), max_size=40))
def test_looking_always_says_what_the_call_then_hears(steps: list[tuple[str, str | None]]) -> None:
    run = Run()
    for argument, result in steps:
        tool = STATUS if argument == "C" else ECHO
        looked = run.loops.look("run", tool, call_key(tool.id, argument.encode()))
        assert run.call(argument, result, tool) == looked


@pytest.mark.requirement("C10.3")
def test_a_block_alone_does_not_end_the_run() -> None:
    run = Run()
    verdicts = [run.call(result=None) for _ in range(6)]
    assert sum(isinstance(verdict, Block) for verdict in verdicts) == 2
    assert word(run.call(argument="other", result="new")) == "pass"


@pytest.mark.requirement("C10.2")
def test_what_is_repeated_is_remembered_whatever_else_happens_in_between() -> None:
    run, words = Run(), list[str]()
    for turn in range(5):
        words.append(word(run.call(argument="again", result=None)))
        for other in range(40):
            run.call(argument=f"{turn}/{other}", result=f"{turn}/{other}")
    assert words == ["pass", "pass", "warn", "warn", "identical_calls"]


@pytest.mark.requirement("C10.1")
def test_the_run_that_rested_longest_is_forgotten_first() -> None:
    loops = Loops(LoopLimits(runs=2))
    words = [word(Run(loops, name).call(result=None)) for name in "abacab"]
    assert words == ["pass"] * 4 + ["warn", "pass"]


@pytest.mark.requirement("C10.1")
def test_runs_and_what_is_kept_of_each_are_bounded() -> None:
    loops = Loops(LoopLimits(runs=10))
    for number in range(100):
        Run(loops, f"run {number}").call()
    assert loops.size == 10
    run = Run(loops, "long")
    for number in range(1_000):
        run.call(argument=f"{number}", result=f"{number}")
    kept = loops._runs["long"]
    assert (len(kept.history), len(kept.series), len(kept.results)) == (30, 64, 128)


@pytest.mark.requirement("C2.9", "C10.4")
def test_other_thresholds_count_at_once_and_what_was_counted_stays() -> None:
    run = Run()
    assert [word(run.call(result=None)) for _ in range(2)] == ["pass", "pass"]
    run.loops.configure(LoopLimits(block_calls=3))
    assert word(run.call(result=None)) == "identical_calls"
