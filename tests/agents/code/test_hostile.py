"""Code agents that raise, hang, block, print, fork, exit and flood: nobody else notices."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.agents.code.stage import logged, stage

from openfang.agents.loop import Budget
from openfang.core.agents import Ending, Words
from openfang.core.errors import SourceFailed
from openfang.core.results import text_result

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.agents.code.stage import Stage

    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Wish
    from openfang.core.results import Result

pytestmark = [
    pytest.mark.requirement("C6.1", "C16.1", "C16.2"),
    pytest.mark.needs("bwrap"),
]

GOOD = "async def run(message, context): return 'fine'"


def running(root: Path) -> list[int]:
    """The processes that belong to the agents of one home."""
    mark = str(root / "openfang").encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark in words and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


async def nothing_is_left(root: Path, within: float = 10.0) -> None:
    began = time.monotonic()
    while left := await to_thread.run_sync(running, root):
        assert time.monotonic() - began < within, left


@asynccontextmanager
async def beside_a_good_one(root: Path) -> AsyncGenerator[Stage]:
    """Whatever happens meanwhile, another agent answers at once, before and after."""
    async with stage(root) as on:
        good = on.agent(GOOD, name="good")
        assert await on.answer(good) == "fine"
        warm = on.programs._keepers["good"]._warm
        yield on
        with anyio.fail_after(30):
            assert await on.answer(good) == "fine"
        assert on.programs._keepers["good"]._warm is warm
    await nothing_is_left(root)


async def failure(on: Stage, spec: AgentSpec, message: str = "") -> str:
    with pytest.raises(SourceFailed) as caught:
        await on.say(spec, message)
    return caught.value.message


async def test_one_that_raises_fails_its_run_and_the_log_has_the_trace(tmp_path: Path) -> None:
    with logged() as log:
        async with beside_a_good_one(tmp_path) as on:
            spec = on.agent("""
                async def run(message, context):
                    if message:
                        raise ValueError(f"no {message}")
                    return "well"
                """)
            assert await failure(on, spec, "luck") == "The agent tester failed: ValueError: no luck"
            assert 'raise ValueError(f"no {message}")' in await log.says("no luck")
            assert await on.answer(spec) == "well"


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_one_that_calls_sys_exit_fails_its_run_alone(tmp_path: Path, kind: str) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent(f"import sys\n{kind} run(message): sys.exit(3) if message else None")
        assert "sys.exit(3)" in await failure(on, spec, "leave")
        assert await on.answer(spec) == ""
        warm = on.programs._keepers["tester"]._warm
        assert warm is not None
        assert warm.served == 2


async def test_one_that_exits_fails_every_run_with_the_code_and_is_started_again(
    tmp_path: Path,
) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            import asyncio, os

            async def run(message, context):
                if message == "exit":
                    os._exit(7)
                if message == "wait":
                    context.stream("waiting")
                    await asyncio.sleep(1000)
                return message
            """)
        told: list[str] = []

        async def wait() -> None:
            told.append(await failure(on, spec, "wait"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await on.hears(Words("waiting"))
            told.append(await failure(on, spec, "exit"))
        assert told == ["The agent tester failed: it ended with exit code 7"] * 2
        assert await on.answer(spec, "again") == "again"


async def test_one_that_dies_at_once_again_and_again_is_not_started_each_time(
    tmp_path: Path,
) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("import os\nasync def run(message): os._exit(1)")
        for _ in range(2):
            assert "exit code 1" in await failure(on, spec)
        assert "has failed 2 times in a row" in await failure(on, spec)
        mended = on.agent("async def run(message): return 'mended'")
        assert await on.answer(mended) == "mended"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def run(:", "SyntaxError"),
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("def walk(): pass", "agent.py has no function run"),
        ("import sys\nsys.exit(4)", "sys.exit(4)"),
        ("import os\nos._exit(5)", "exit code 5"),
    ],
)
async def test_one_that_cannot_be_loaded_says_why(tmp_path: Path, source: str, reason: str) -> None:
    async with stage(tmp_path) as on:
        assert reason in await failure(on, on.agent(source))


HANGS = """
import asyncio

async def run(message):
    await asyncio.sleep(1000 if message == "hang" else 0)
"""
STUBBORN = """
import asyncio

async def run(message):
    while message == "hang":
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass
    return "well"
"""
BLOCKS = "import time\nasync def run(message):\n    time.sleep(1000 if message == 'hang' else 0)"
SPINS = "async def run(message):\n    while message == 'hang': pass"
PLAIN = "import time\ndef run(message):\n    time.sleep(1000 if message == 'hang' else 0)"


@pytest.mark.parametrize("source", [HANGS, STUBBORN, BLOCKS, SPINS, PLAIN])
async def test_one_that_hangs_ends_with_its_budget(tmp_path: Path, source: str) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent(source)
        assert (await on.say(spec, "now")).ending is Ending.ANSWERED
        ended = await on.say(replace(spec, budget=Budget(seconds=0.3)), "hang")
        assert ended.ending is Ending.TIME
        assert ended.answer == "I stopped: the run has no more time left."
        assert (await on.say(spec, "now")).ending is Ending.ANSWERED


@pytest.mark.parametrize("source", [STUBBORN, BLOCKS, SPINS, PLAIN])
async def test_a_run_that_was_cancelled_is_gone_within_a_second(
    tmp_path: Path, source: str
) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent(source)
        await on.say(spec, "now")
        with anyio.move_on_after(0.3):
            await on.say(spec, "hang")
        await nothing_is_left(tmp_path, within=1.0)


async def test_one_that_blocks_takes_its_own_runs_along_and_says_why(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            import asyncio, time

            async def run(message, context):
                context.stream(message)
                if message == "block":
                    time.sleep(1000)
                await asyncio.sleep(1000)
            """)
        told: list[str] = []

        async def wait() -> None:
            told.append(await failure(on, spec, "wait"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await on.hears(Words("wait"))
            with anyio.move_on_after(0.2):
                await on.say(spec, "block")
        assert told == [
            "The agent tester failed: it was ended, because a run that was cancelled blocked it"
        ]


async def test_a_run_that_will_not_stop_leaves_the_others_in_peace(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            import asyncio, time

            def run(message, context):
                if message == "hang":
                    time.sleep(1000)
                context.call("echo")
                return "whole"
            """)
        called, go_on = anyio.Event(), anyio.Event()
        answers: list[str] = []

        async def slow(wish: Wish) -> Result:
            del wish
            called.set()
            await go_on.wait()
            return text_result("")

        async def other() -> None:
            answers.append((await on.say(spec, call=slow)).answer)

        with logged() as log:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other)
                await called.wait()
                with anyio.move_on_after(0.2):
                    await on.say(spec, "hang")
                await log.says("does not stop")
                assert await on.answer(spec, "more") == "whole"
                go_on.set()
        assert answers == ["whole"]


async def test_a_cancelled_run_cancels_its_calls(tmp_path: Path) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def endless(wish: Wish) -> Result:
        del wish
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("async def run(message, context): await context.call('echo')")
        async with anyio.create_task_group() as tasks:

            async def say() -> None:
                await on.say(spec, call=endless)

            tasks.start_soon(say)
            await began.wait()
            tasks.cancel_scope.cancel()
        assert ended.is_set()
        assert await on.answer(spec) == ""


async def test_a_call_that_nobody_awaits_ends_with_its_run(tmp_path: Path) -> None:
    ended = anyio.Event()

    async def endless(wish: Wish) -> Result:
        del wish
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with stage(tmp_path) as on:
        spec = on.agent("""
            import asyncio

            async def run(message, context):
                task = asyncio.create_task(context.call("echo"))
                await asyncio.sleep(0)
                return "gone"
            """)
        assert (await on.say(spec, call=endless)).answer == "gone"
        assert ended.is_set()


async def test_one_that_prints_without_end_harms_nobody(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                for n in range(200_000):
                    print("x" * 100, n)
                return "printed"
            """)
        with logged() as log:
            assert await on.answer(spec) == "printed"
        assert len(log.lines) < 10_000


async def test_one_that_streams_without_end_is_stopped(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                for _ in range(3_000_000):
                    context.stream("x" * 1000)
            """)
        assert "more than 10000000 characters" in await failure(on, spec)


async def test_one_that_calls_without_end_is_stopped(tmp_path: Path) -> None:
    async def endless(wish: Wish) -> Result:
        del wish
        await anyio.sleep_forever()
        raise AssertionError

    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            import asyncio

            async def run(message, context):
                await asyncio.gather(*(context.call("echo") for _ in range(5000)))
            """)
        with pytest.raises(SourceFailed, match="wait at once"):
            await on.say(spec, call=endless)


RUBBISH = """
import os

async def run(message, context):
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, {rubbish!r})
        except OSError:
            pass
    return "said"
"""


@pytest.mark.parametrize(
    "rubbish",
    [
        b"rubbish without an end",
        b"\n{broken\n[1, 2]\nnull\n",
        b'\n{"id":99,"say":"result"}\n{"id":1}\n'.replace(b'{"id":1}', b'{"id":98}'),
        b'\n{"say":"ready"}\n{"id":0,"say":"broken"}\n',
        b"\x00\xff" * 1000,
    ],
)
async def test_rubbish_between_the_messages_is_passed_over(tmp_path: Path, rubbish: bytes) -> None:
    async with beside_a_good_one(tmp_path) as on:
        assert await on.answer(on.agent(RUBBISH.format(rubbish=rubbish))) == "said"


ABOUT_ITSELF = """
import os

async def run(message, context):
    own = context._run
    line = '\\n{{"id":%d,"say":"%s","text":7}}\\n' % (own.number, {say})
    os.write(own.channel._write, line.encode())
    return "said"
"""


async def test_rubbish_about_a_run_fails_that_run(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        assert "cannot be read" in await failure(on, on.agent(ABOUT_ITSELF.format(say="'stream'")))
        long = await failure(on, on.agent(ABOUT_ITSELF.format(say="'x' * 5_000_000")))
        assert "cannot be read" in long
        assert len(long) < 1000


async def test_a_flood_of_messages_that_belong_to_nothing_ends_the_process(
    tmp_path: Path,
) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            import os

            async def run(message, context):
                for _ in range(30):
                    for descriptor in range(3, 20):
                        try:
                            os.write(descriptor, b'{"id":0,"say":"log","text":"x"}\\n' * 1000)
                        except OSError:
                            pass
            """)
        assert "belong to no run" in await failure(on, spec)


async def test_what_a_run_says_that_was_ended_breaks_no_other(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            import asyncio

            async def run(message, context):
                if message != "flood":
                    return "fine"
                for number in range(140):
                    for _ in range(1000):
                        context.stream("w ")
                    await asyncio.sleep(0)
            """)
        assert await on.answer(spec) == "fine"
        assert "more than 100000 messages" in await failure(on, spec, "flood")
        first = on.programs._keepers["tester"]._warm
        assert await on.answer(spec) == "fine"
        assert on.programs._keepers["tester"]._warm is first


async def test_a_line_without_end_ends_the_process(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        source = RUBBISH.format(rubbish=b"x" * 100_000)
        spec = on.agent(source.replace("range(3, 20)", "[*range(3, 20)] * 200"))
        assert "tester failed: It wrote a line of more than" in await failure(on, spec)


async def test_what_is_too_large_to_send_is_the_agents_own_error(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            async def run(message, context):
                try:
                    context.artifact("big", "x" * 11_000_000)
                except ValueError as error:
                    return str(error)
            """)
        assert "bytes are more than 10000000" in await on.answer(spec)
        spec = on.agent("async def run(message): return 'x' * 6_000_000", name="long")
        assert "The answer has 6000000 characters" in await failure(on, spec)


async def test_a_fork_of_the_agent_answers_once_and_ends(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        for kind in ("async def", "def"):
            spec = on.agent(
                f"import os\n{kind} run(message):\n    child = os.fork()\n"
                "    if child: os.waitpid(child, 0)\n    return 'once'",
                name=kind.replace(" ", ""),
            )
            assert [await on.answer(spec) for _ in range(3)] == ["once"] * 3


async def test_one_that_forks_too_often_is_ended(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("""
            import asyncio, os, time

            async def run(message, context):
                for _ in range(200):
                    if os.fork() == 0:
                        time.sleep(100)
                        os._exit(0)
                await asyncio.sleep(100)
            """)
        reason = await failure(on, spec)
        assert "more than 128 processes" in reason or "BlockingIOError" in reason


async def test_processes_that_a_run_leaves_behind_end_with_the_agent(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            import os, time

            async def run(message):
                for _ in range(3):
                    if os.fork() == 0:
                        os.setsid()
                        time.sleep(1000)
                return "left"
            """)
        assert await on.answer(spec) == "left"
        on.programs.retain(())
        await nothing_is_left(tmp_path)


async def test_memory_and_processor_time_are_bounded(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent(
            "async def run(message): return len(bytearray(200 << 20))",
            memory_bytes=128 << 20,
        )
        assert "MemoryError" in await failure(on, spec)
        spec = on.agent("async def run(message):\n    while True: pass", name="busy", cpu_seconds=1)
        assert "used up its 1 s of processor time" in await failure(on, spec)


async def test_it_sees_its_folder_and_writes_its_workspace_alone(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        spec = on.agent("""
            import os, socket
            from pathlib import Path

            def tried(act):
                try:
                    return act()
                except OSError as error:
                    return type(error).__name__

            async def run(message):
                home = Path(__file__).parents[2]
                Path("kept.txt").write_text("kept")
                return {
                    "reads": "tried" in Path(__file__).read_text(),
                    "own folder": tried(lambda: Path(__file__).write_text("changed")),
                    "other agents": tried(lambda: os.listdir(home / "agents" / "good")),
                    "key": tried((home / "key").read_text),
                    "network": tried(lambda: socket.create_connection(("127.0.0.1", 9), 1)),
                    "variables": sorted(set(os.environ) - {"OPENFANG_RUN", "PWD"}),
                }
            """)
        on.agent(GOOD, name="good")
        (on.home / "key").write_text("secret")
        answer = await on.answer(spec)
        assert answer == (
            '{"reads": true, "own folder": "OSError", "other agents": "FileNotFoundError", '
            '"key": "FileNotFoundError", "network": "ConnectionRefusedError", '
            '"variables": ["HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "TMPDIR"]}'
        )
        assert (spec.workspace / "kept.txt").read_text() == "kept"


async def test_one_that_is_killed_is_started_again(tmp_path: Path) -> None:
    async with beside_a_good_one(tmp_path) as on:
        spec = on.agent("import os\nasync def run(message): return os.getppid()")
        assert await on.answer(spec) == "1"
        warm = on.programs._keepers["tester"]._warm
        assert warm is not None
        assert warm._lines is not None
        os.kill(warm._lines.process.pid, signal.SIGKILL)
        with anyio.fail_after(30):
            await warm.over.wait()
        assert warm.reason == "it was ended by the signal SIGKILL"
        assert await on.answer(spec) == "1"


DAEMON = """
import asyncio, sys
from pathlib import Path
import anyio
sys.path.insert(0, sys.argv[1])
from tests.agents.code.stage import stage

async def main():
    async with stage(Path(sys.argv[2])) as on:
        spec = on.agent('''
import os, time
async def run(message, context):
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)
    return "left"
''')
        sys.stdout.write(await on.answer(spec) + chr(10))
        sys.stdout.flush()
        await anyio.sleep_forever()

anyio.run(main)
"""


async def test_nothing_is_left_when_we_are_killed(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", DAEMON, root, str(tmp_path)]
    async with await anyio.open_process(command) as daemon:
        assert daemon.stdout is not None
        with anyio.fail_after(60):
            assert (await daemon.stdout.receive()).strip() == b"left"
        assert len(await to_thread.run_sync(running, tmp_path)) > 2
        daemon.kill()
        await daemon.wait()
        await nothing_is_left(tmp_path)
