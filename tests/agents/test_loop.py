"""The loop: what it asks, what it makes side by side, and when it stops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from openfang.agents.compact import size
from openfang.agents.history import resumed, trimmed, unanswered
from openfang.agents.loop import Budget, Run
from openfang.agents.planner.model import PlannerModel
from openfang.core.agents import (
    Ended,
    Ending,
    Heard,
    Made,
    Message,
    Prompt,
    Speaker,
    Spent,
    Usage,
    Wanted,
    Wish,
    Words,
)
from openfang.core.budgets import Account, Allowance, Reached, Whose, Window
from openfang.core.errors import PolicyViolation, SourceFailed
from openfang.core.ids import Kind
from openfang.core.results import Result, text_result
from openfang.core.tools import Tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from openfang.core.agents import Said

pytestmark = pytest.mark.requirement("C6.4")


def _tool(name: str, *tags: str) -> Tool:
    text = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return Tool(
        id=f"builtin:{name}",
        kind=Kind.BUILTIN,
        source="builtin",
        name=name,
        wire_name=name,
        description=f"{name.replace('_', ' ')} of the workspace",
        input_schema=text,
        tags=frozenset(tags),
    )


TOOLS = (_tool("file_read", "fs.read"), _tool("file_write", "fs.write"))


class Script:
    """A model that says what it was told to, round after round."""

    name = "script"

    def __init__(self, *rounds: list[Said]) -> None:
        self.rounds = list(rounds)
        self.prompts: list[Prompt] = []

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        self.prompts.append(prompt)
        for said in self.rounds.pop(0) if self.rounds else [Words("done")]:
            yield said
        yield Spent(Usage(requests=1, input_tokens=10, output_tokens=5, cost_usd=0.01))


@dataclass(slots=True)
class Memory:
    """A journal that can be looked at."""

    turns: list[Message] = field(default_factory=list[Message])

    async def said(self, message: Message) -> None:
        self.turns.append(message)


def _wish(number: int, tool: str = "file_read") -> Wanted:
    return Wanted(Wish(id=f"w{number}", tool=tool, arguments={"path": f"{number}.txt"}))


def _run(
    model: Any,
    call: Callable[[Wish], Awaitable[Result]],
    *,
    history: list[Message] | None = None,
    budget: Budget = Budget(),  # noqa: B008 - it is frozen
) -> tuple[Run, Memory, list[Heard]]:
    heard: list[Heard] = []
    journal = Memory()
    run = Run(
        model=model,
        system="Be brief.",
        history=history or [Message(speaker=Speaker.USER, text="read 1.txt")],
        tools=lambda: TOOLS,
        call=call,
        journal=journal,
        told=heard.append,
        budget=budget,
    )
    return run, journal, heard


def _bound(*, tokens: int = 0, cost_usd: float = 0.0) -> Allowance:
    return Allowance(
        account=Account(whose=Whose.PURSE, name="assistant"),
        window=Window.RUN,
        said="the agent assistant",
        setting="safety.max_token_usage",
        tokens=tokens,
        cost_usd=cost_usd,
    )


async def _over(bound: Allowance | None, used: Usage) -> Reached | None:
    if bound is None:
        return None
    amount = used.tokens if bound.tokens else used.cost_usd
    most = bound.tokens or bound.cost_usd
    return Reached(allowance=bound, used=amount) if amount >= most else None


async def _say_path(wish: Wish) -> Result:
    return text_result(f"<{wish.arguments['path']}>")


async def test_results_go_back_until_the_model_answers() -> None:
    model = Script([_wish(1)], [Words("It says "), Words("<1.txt>.")])
    run, journal, heard = _run(model, _say_path)

    ended = await run.answer()

    assert ended == Ended(
        answer="It says <1.txt>.",
        usage=Usage(requests=2, input_tokens=20, output_tokens=10, cost_usd=0.02),
    )
    assert model.prompts[1].messages[-1].text == "<1.txt>"
    assert [turn.speaker for turn in journal.turns] == [Speaker.AGENT, Speaker.TOOL, Speaker.AGENT]
    assert [type(one) for one in heard] == [Wanted, Made, Words, Words, Ended]


async def test_reads_run_side_by_side_and_effects_in_order() -> None:
    together = anyio.Event()
    order: list[str] = []

    async def call(wish: Wish) -> Result:
        order.append(wish.id)
        if wish.id == "w1":
            await together.wait()
        if wish.id == "w2":
            together.set()
        return text_result(wish.id)

    wishes: list[Said] = [_wish(1), _wish(2), _wish(3, "file_write"), _wish(4, "file_write")]
    model = Script(wishes)
    run, journal, _ = _run(model, call)
    with anyio.fail_after(30):
        await run.answer()

    assert order[2:] == ["w3", "w4"]
    assert [turn.answers for turn in journal.turns[1:5]] == ["w2", "w1", "w3", "w4"]
    assert [turn.answers for turn in model.prompts[1].messages[2:]] == ["w1", "w2", "w3", "w4"]


async def test_a_result_is_kept_as_soon_as_it_is_there() -> None:
    async def call(wish: Wish) -> Result:
        if wish.id == "w1":
            await anyio.sleep_forever()
        return text_result(wish.id)

    run, journal, _ = _run(Script([_wish(1), _wish(2)]), call, budget=Budget(seconds=0.2))
    with anyio.fail_after(30):
        await run.answer()

    assert [turn.answers for turn in journal.turns] == ["", "w2"]


async def test_agents_are_called_one_after_the_other_whatever_their_tags_say() -> None:
    under_way: list[str] = []

    async def call(wish: Wish) -> Result:
        assert not under_way
        under_way.append(wish.id)
        await anyio.lowlevel.checkpoint()
        under_way.clear()
        return text_result("done")

    agent = replace(_tool("b"), kind=Kind.AGENT)
    send = replace(_tool("agent_send"), hands_on=True)
    assert not agent.only_reads
    assert not send.only_reads
    run, _, heard = _run(
        Script([_wish(1, "b"), _wish(2, "b"), _wish(3, "agent_send"), _wish(4, "agent_send")]),
        call,
    )
    run.tools = lambda: (agent, send)
    await run.answer()

    assert [one.outcome for one in heard if isinstance(one, Made)] == ["ok"] * 4


async def test_a_refused_call_comes_back_as_a_result_that_says_why() -> None:
    async def call(wish: Wish) -> Result:
        if wish.id == "w1":
            raise PolicyViolation("Policy violation: no.", rule="x", way_out="ask")
        raise SourceFailed("It broke.", way_out="mend it")

    model = Script([_wish(1), _wish(2)])
    run, journal, heard = _run(model, call)
    ended = await run.answer()

    assert ended.answer == "done"
    assert journal.turns[1].text == "Error: Policy violation: no. Way out: ask."
    assert journal.turns[2].text == "Error: It broke. Way out: mend it."
    assert [one.outcome for one in heard if isinstance(one, Made)] == ["refused", "error"]


@pytest.mark.parametrize(
    ("bound", "ending"),
    [
        (None, Ending.STEPS),
        (_bound(tokens=15), Ending.TOKENS),
        (_bound(cost_usd=0.01), Ending.COST),
    ],
)
async def test_a_budget_ends_a_run_and_leaves_no_call_without_its_result(
    bound: Allowance | None, ending: Ending
) -> None:
    model = Script([_wish(1)], [_wish(2)], [_wish(3)])
    run, journal, _ = _run(model, _say_path, budget=Budget(rounds=2))
    run.over = partial(_over, bound)

    ended = await run.answer()

    assert ended.ending is ending
    assert ended.answer.startswith("I stopped")
    assert unanswered(journal.turns) == ()


async def test_time_ends_a_run_whatever_it_waits_for() -> None:
    async def never(_: Wish) -> Result:
        await anyio.sleep_forever()
        raise AssertionError

    run, _, _ = _run(Script([_wish(1)]), never, budget=Budget(seconds=0.05))
    with anyio.fail_after(30):
        assert (await run.answer()).ending is Ending.TIME


async def test_what_was_said_until_time_was_up_is_in_the_answer() -> None:
    class Slow(Script):
        async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
            del prompt
            yield Words("Let me ")
            await anyio.sleep_forever()

    run, _, _ = _run(Slow(), _say_path, budget=Budget(seconds=0.05))
    with anyio.fail_after(30):
        ended = await run.answer()

    assert ended.answer == "Let me \n\nI stopped: the run has no more time left."


async def test_a_model_that_breaks_ends_the_run_as_failed() -> None:
    class Broken(Script):
        async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
            del prompt
            yield Words("I think ")
            raise ZeroDivisionError

    run, _, heard = _run(Broken(), _say_path)
    ended = await run.answer()

    assert ended.ending is Ending.FAILED
    assert ended.answer == "I think \n\nI stopped: the model failed."
    assert heard[-1] == ended


async def test_a_model_is_asked_again_as_often_as_its_rounds() -> None:
    model = Script([_wish(1)], [Words("It is one.")])
    run, _, _ = _run(model, _say_path, budget=Budget(rounds=1))

    assert (await run.answer()).answer == "It is one."


@pytest.mark.parametrize(
    ("bound", "ending"),
    [(_bound(tokens=100), Ending.TOKENS), (_bound(cost_usd=1.0), Ending.COST)],
)
async def test_what_was_used_before_counts(bound: Allowance, ending: Ending) -> None:
    model = Script([Words("hello")])
    run, _, _ = _run(model, _say_path)
    run.over = partial(_over, bound)
    run.usage = Usage(input_tokens=90, output_tokens=10, cost_usd=1.0)
    ended = await run.answer()

    assert (ended.ending, ended.usage) == (ending, run.usage)
    assert model.prompts == []


async def test_a_budget_is_named_in_the_last_words_and_for_programs() -> None:
    run, _, heard = _run(Script([Words("One moment. "), _wish(1)]), _say_path)
    run.over = partial(_over, _bound(tokens=15))
    ended = await run.answer()

    assert ended.why == (
        "I stopped: the budget of the agent assistant is used up: 15 of 15 tokens a run. "
        "It is raised by safety.max_token_usage."
    )
    assert ended.answer == f"One moment. \n\n{ended.why}"
    assert ended.budget == Reached(allowance=_bound(tokens=15), used=15)
    assert heard[-1] == ended


async def test_what_others_took_from_a_budget_meanwhile_ends_a_run_before_it_asks_again() -> None:
    """A call may be to an agent that takes from the same budget."""
    model = Script([_wish(1)], [Words("never asked")])
    bounds = [None, None, None, _bound(tokens=1)]

    async def over(used: Usage) -> Reached | None:
        return await _over(bounds.pop(0), used)

    run, journal, _ = _run(model, _say_path)
    run.over = over
    ended = await run.answer()

    assert ended.ending is Ending.TOKENS
    assert len(model.prompts) == 1
    assert journal.turns[-1].text == "<1.txt>"


class Endless(Script):
    """A model that makes no progress: it wants the same again and again."""

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        self.prompts.append(prompt)
        yield _wish(len(self.prompts))
        yield Spent(Usage(requests=1, input_tokens=10, output_tokens=5))


async def test_a_model_that_never_stops_is_ended_by_its_rounds() -> None:
    model = Endless()
    run, journal, _ = _run(model, _say_path, budget=Budget(rounds=7))
    with anyio.fail_after(20):
        ended = await run.answer()

    assert (ended.ending, len(model.prompts)) == (Ending.STEPS, 8)
    assert ended.answer == "I stopped: the run has no more steps left."
    assert unanswered(journal.turns) == ()


async def test_a_model_that_never_stops_is_ended_by_its_budget() -> None:
    model = Endless()
    run, _, _ = _run(model, _say_path, budget=Budget(rounds=1_000))
    run.over = partial(_over, _bound(tokens=60))
    with anyio.fail_after(20):
        ended = await run.answer()

    assert (ended.ending, len(model.prompts)) == (Ending.TOKENS, 4)


async def test_a_model_that_speaks_without_end_is_ended_by_time() -> None:
    class Talker(Script):
        async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
            del prompt
            while True:
                yield Words("and ")
                await anyio.lowlevel.checkpoint()

    run, _, _ = _run(Talker(), _say_path, budget=Budget(seconds=0.05))
    with anyio.fail_after(20):
        ended = await run.answer()

    assert ended.ending is Ending.TIME
    assert ended.answer.startswith("and and ")
    assert ended.answer.endswith("I stopped: the run has no more time left.")


async def test_a_long_run_is_asked_within_the_window_and_kept_whole() -> None:
    async def long(_: Wish) -> Result:
        return text_result("long " * 10_000)

    rounds: list[list[Said]] = [[_wish(number)] for number in range(20)]
    model = Script(*rounds)
    run, journal, _ = _run(model, long)
    run.window, run.max_tokens = 20_000, 1000
    assert (await run.answer()).answer == "done"

    sizes = [size(prompt.messages) for prompt in model.prompts]
    assert len(sizes) == 21
    assert max(sizes) <= 19_000
    assert all(prompt.messages[0].text == "read 1.txt" for prompt in model.prompts)
    assert {len(turn.text) for turn in journal.turns if turn.answers} == {50_000}


async def test_a_run_that_goes_on_makes_what_is_left_and_repeats_nothing() -> None:
    history = [
        Message(speaker=Speaker.USER, text="three, please"),
        Message(
            speaker=Speaker.AGENT,
            wishes=(_wish(1).wish, _wish(2, "file_write").wish, _wish(3).wish),
        ),
        Message(speaker=Speaker.TOOL, text="one", answers="w1"),
    ]
    made: list[str] = []

    async def call(wish: Wish) -> Result:
        made.append(wish.id)
        return text_result(wish.id)

    whole = resumed(history, frozenset({"w1", "w2", "w3"}), lambda wish: wish.tool == "file_read")
    run, _, _ = _run(Script(), call, history=whole)
    await run.answer()

    assert made == ["w3"]
    assert "not known" in next(one.text for one in whole if one.answers == "w2")


def test_what_is_cut_begins_where_a_person_speaks() -> None:
    turn = [
        Message(speaker=Speaker.USER, text="go"),
        Message(speaker=Speaker.AGENT, wishes=(_wish(1).wish,)),
        Message(speaker=Speaker.TOOL, answers="w1"),
        Message(speaker=Speaker.AGENT, text="there"),
    ]

    assert trimmed(turn * 10, 6) == turn
    assert trimmed(turn * 10, 2) == turn
    assert trimmed(turn, 4) == turn


async def test_the_planner_makes_a_call_and_hands_on_its_result() -> None:
    run, _, heard = _run(
        PlannerModel(),
        _say_path,
        history=[Message(speaker=Speaker.USER, text="read notes/today.md")],
    )

    assert (await run.answer()).answer == "<notes/today.md>"
    assert isinstance(heard[0], Wanted)


async def test_the_planner_says_what_it_is_when_nothing_fits() -> None:
    run, _, _ = _run(
        PlannerModel(),
        _say_path,
        history=[Message(speaker=Speaker.USER, text="What is the meaning of life?")],
    )
    answer = (await run.answer()).answer

    assert "no language model" in answer
    assert "file_read" in answer
