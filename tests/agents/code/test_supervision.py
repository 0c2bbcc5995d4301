"""One warm process for each agent: many runs at once, replaced when something changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.agents.code.stage import echo_tool, nobody, stage

from openfang.agents.code.allotted import Allotted
from openfang.agents.code.running import Order
from openfang.agents.loop import Budget
from openfang.agents.ports import Incoming
from openfang.core.agents import Words
from openfang.core.errors import SourceFailed
from openfang.core.results import text_result
from openfang.host.headcount import headcount

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agents.code.stage import Stage

    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Wish
    from openfang.core.results import Result
    from openfang.host.children.warm import Warm

pytestmark = [pytest.mark.requirement("C6.1", "C16.1"), pytest.mark.needs("bwrap")]


def warm(on: Stage, name: str = "tester") -> Warm:
    found = on.programs._keepers[name]._warm
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_fifty_runs_at_once_share_one_process(tmp_path: Path, kind: str) -> None:
    wait = "await " if kind == "async def" else ""
    answers: list[str] = []
    async with stage(tmp_path) as on:
        spec = on.agent(f"""
            {kind} run(message, context):
                found = {wait}context.call("echo", {{"text": message}})
                return found.text + " " + ({wait}context.call("echo", {{"text": message}})).text
            """)

        async def say(number: int) -> None:
            answers.append(await on.answer(spec, str(number)))

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(say, number)
        assert sorted(answers) == sorted(f"{number} {number}" for number in range(50))
        assert warm(on).served == 50


async def test_calls_of_one_run_are_made_as_many_at_once_as_it_may(tmp_path: Path) -> None:
    now, most = 0, 0
    full = anyio.Event()

    async def count(wish: Wish) -> Result:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            full.set()
        await full.wait()
        await anyio.lowlevel.checkpoint()
        now -= 1
        return text_result(str(wish.arguments["n"]))

    async with stage(tmp_path) as on:
        spec = on.agent(
            """
            import asyncio

            async def run(message, context):
                calls = [context.call("echo", {"n": n}) for n in range(20)]
                return [found.text for found in await asyncio.gather(*calls)]
            """,
            budget=Budget(at_once=3),
        )
        answer = (await on.say(spec, call=count)).answer
        assert answer == str([str(n) for n in range(20)]).replace("'", '"')
        assert most == 3


async def soon(on: Stage, spec: AgentSpec, answer: str) -> str:
    """Ask until the answer is the new one."""
    with anyio.fail_after(30):
        while await on.answer(spec, "now") != answer:
            pass
    return answer


WAITS = """
async def run(message, context):
    context.stream("began")
    await context.call("echo")
    return "old"
"""


async def said_meanwhile(on: Stage, old: AgentSpec, new: AgentSpec) -> list[str]:
    """Let a run of the old one wait, until the new one has answered."""
    go_on = anyio.Event()
    answers: list[str] = []
    first: list[Warm] = []

    async def slow(wish: Wish) -> Result:
        del wish
        await go_on.wait()
        return text_result("")

    async def begin() -> None:
        answers.append((await on.say(old, call=slow)).answer)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begin)
        await on.hears(Words("began"))
        first.append(warm(on))
        (on.home / "agents" / "tester" / "agent.py").write_text(
            "async def run(message, context): return 'new'"
        )
        answers.append(await soon(on, new, "new"))
        assert not first[0].over.is_set()
        go_on.set()
    with anyio.fail_after(30):
        await first[0].over.wait()
    return answers


async def test_an_edited_file_is_live_within_a_second_and_what_runs_is_not_disturbed(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        waits = on.agent(WAITS.replace("await", "if message != 'now': await"))
        assert await said_meanwhile(on, waits, waits) == ["new", "old"]


async def test_an_edited_module_beside_it_is_live_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("import words\nasync def run(message, context): return words.HELLO")
        module = on.home / "agents" / "tester" / "words.py"
        module.write_text("HELLO = 'hello'")
        assert await on.answer(spec) == "hello"
        module.write_text("HELLO = 'good day'")
        await soon(on, spec, "good day")


async def test_an_edited_module_further_down_is_live_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("from far.off import HELLO\nasync def run(message): return HELLO")
        module = on.home / "agents" / "tester" / "far" / "off.py"
        module.parent.mkdir()
        module.write_text("HELLO = 'hello'")
        assert await on.answer(spec) == "hello"
        module.write_text("HELLO = 'good day'")
        with anyio.fail_after(30):
            while await on.answer(spec) != "good day":
                pass


async def test_no_run_can_guess_the_number_of_another(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("async def run(message, context): return context._run.number")
        numbers = [int(await on.answer(spec)) for _ in range(20)]
    assert len(set(numbers)) == 20
    assert max(numbers) > 1 << 40
    assert not any(two - one == 1 for one, two in pairwise(numbers))


async def test_a_changed_manifest_replaces_the_process_only_if_it_concerns_it(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("async def run(message): return 'run'\nasync def other(_): return 'other'")
        assert await on.answer(spec) == "run"
        first = warm(on)
        assert await on.answer(replace(spec, description="What it is for")) == "run"
        assert warm(on) is first
        other = replace(spec, does=replace(spec.does, function="other"))
        assert await on.answer(other) == "other"
        with anyio.fail_after(30):
            await first.over.wait()


async def test_an_agent_that_was_removed_ends_and_the_others_stay(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        specs = [on.agent("async def run(message): return 1", name=name) for name in ("a", "b")]
        for spec in specs:
            assert await on.answer(spec) == "1"
        gone, stays = warm(on, "a"), warm(on, "b")
        on.programs.retain({"b"})
        with anyio.fail_after(30):
            await gone.over.wait()
        assert await on.answer(specs[1]) == "1"
        assert warm(on, "b") is stays


async def test_one_that_used_much_of_its_processor_time_is_replaced_between_runs(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent(
            """
            import time

            async def run(message):
                until = time.process_time() + 0.6
                while time.process_time() < until:
                    pass
                return "done"
            """,
            cpu_seconds=1,
        )
        assert [await on.answer(spec) for _ in range(3)] == ["done"] * 3


async def test_a_run_that_is_cancelled_at_once_is_let_go_of_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            import asyncio

            async def run(message):
                await asyncio.sleep(1000 if message == "hang" else 0)
                return "fine"
            """)
        assert await on.answer(spec) == "fine"
        first = warm(on)
        said = Incoming(message="hang", session="s1", run="run-1")
        for _ in range(20):
            with anyio.CancelScope() as scope:
                scope.cancel()
                order = Order(
                    spec=spec,
                    incoming=said,
                    call=echo_tool,
                    told=on.told,
                    ask=nobody,
                    time=Allotted(None),
                )
                await first.serve(order)
            assert scope.cancelled_caught
        assert await on.answer(spec) == "fine"
        assert warm(on) is first
        assert first.takes


async def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("")
        (on.home / "agents" / "tester" / "agent.py").unlink()
        with pytest.raises(SourceFailed, match="FileNotFoundError"):
            await on.say(spec)


async def test_every_process_of_a_child_is_counted(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            import os, time

            async def run(message):
                for _ in range(4):
                    if os.fork() == 0:
                        time.sleep(100)
            """)
        await on.say(spec)
        lines = warm(on)._lines
        assert lines is not None
        # The sandbox's two, the agent, and its four.
        assert await to_thread.run_sync(headcount, lines.process.pid) == 7
