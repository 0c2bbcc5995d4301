"""An extension in Python: decorated functions in a file, called through the one path."""

from __future__ import annotations

import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from py_compile import PycInvalidationMode
from py_compile import compile as compiled
from typing import TYPE_CHECKING
from zipfile import ZipFile

import anyio
import pytest
from anyio import to_thread
from tests.sources.extensions.stage import ANYTHING, logged, stage

from openfang.core.calls import Grants
from openfang.core.errors import CallTimedOut, NotFound, SourceFailed, UnknownTool
from openfang.core.extensions import Capability, Permissions
from openfang.core.progress import Progress
from openfang.extension import TOOLS, tool
from openfang.host.folders import digest_of, files_of
from openfang.host.headcount import headcount
from openfang.safety.environment import DEFAULT_PATH

if TYPE_CHECKING:
    from openfang.core.progress import Told

IMPORT = "from openfang.extension import tool\n"
pytestmark = [pytest.mark.requirement("C6.3", "C16.1"), pytest.mark.needs("bwrap")]


async def test_plain_and_async_functions_answer_in_words_json_and_parts(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.put(
            """
            from openfang.extension import Result, tool

            @tool
            def greet(*, name, polite=False):
                return f"Good day, {name}" if polite else f"Hi {name}"

            @tool(name="add-up")
            async def add(a: int, b: int):
                return {"sum": a + b}

            @tool
            def listed():
                return [1, 2]

            @tool
            def parts(context):
                context.artifact("a.txt", "made")
                return Result([{"type": "text", "text": "one"}], {"n": 1}, True)

            @tool
            def nothing(): pass
            """,
            *("greet", "add-up", "listed", "parts", "nothing"),
        )
        assert await on.text("greet", name="Ann", polite=True) == "Good day, Ann"
        added = await on.call("add-up", a=1, b=2)
        assert (added.structured, added.text) == ({"sum": 3}, '{"sum": 3}')
        listed = await on.call("listed")
        assert (listed.structured, listed.text) == (None, "[1, 2]")
        parts = await on.call("parts")
        assert (parts.is_error, parts.structured) == (True, {"n": 1})
        assert [part.get("text") for part in parts.content] == ["one", "made"]
        assert (await on.call("nothing")).content == ()


async def test_what_a_function_raises_is_its_answer_and_the_log_has_the_trace(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as on:
        await on.put(
            """
            from openfang.extension import tool

            @tool
            def find(city):
                raise ValueError(f"no city {city}")
            """,
            "find",
        )
        with logged() as log:
            failed = await on.call("find", city="X")
            assert 'raise ValueError(f"no city {city}")' in await log.says("no city X")
        assert (failed.is_error, failed.text) == (True, "ValueError: no city X")
        wrong = await on.call("find", town="X")
        assert "unexpected keyword argument 'town'" in wrong.text


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_it_calls_back_remembers_logs_and_knows_its_config(tmp_path: Path, kind: str) -> None:
    wait = "await " if kind == "async def" else ""
    heard: list[Told] = []
    async with stage(tmp_path) as on:
        await on.put(
            f"""
            from openfang.extension import tool

            @tool
            {kind} work(*, context):
                context.log("at it")
                context.progress(1, 2, "half")
                {wait}context.memory.set("seen", 3)
                time = {wait}context.call("system_time")
                try:
                    {wait}context.call("file_list")
                except context.Refused as refused:
                    why = refused.code
                seen = {wait}context.memory.get("seen")
                none = {wait}context.memory.get("unseen", "nothing")
                return {{"seen": seen, "none": none, "ok": not time.is_error, "why": why,
                         "unit": context.config["unit"]}}
            """,
            "work",
            config={"unit": "EUR"},
            permissions=Permissions(
                grants=Grants(
                    tools=("builtin:system_time",), memory_read=("*",), memory_write=("*",)
                )
            ),
        )
        with logged() as log:
            call = on.app.make("ext:tester:work", {}, progress=heard.append)
            result = await on.app.invoke(call)
            await log.says("tester: at it")
        assert result.structured == {
            "seen": 3,
            "none": "nothing",
            "ok": True,
            "unit": "EUR",
            "why": "unknown_tool",
        }
        assert heard == [Progress(progress=1, total=2, message="half")]
        events = await on.app.events()
    callers = {
        event.context["tool"]: event.context["caller"]
        for event in events
        if event.event_type == "tool_invocation_start"
    }
    assert callers["builtin:system_time"] == callers["builtin:memory_store"] == "ext:tester"
    assert callers["ext:tester:work"] == "key:admin"


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_fifty_calls_at_once_share_one_process(tmp_path: Path, kind: str) -> None:
    answers: list[str] = []
    async with stage(tmp_path) as on:
        await on.put(
            f"""
            import asyncio, os, time
            from openfang.extension import tool

            @tool
            {kind} work(n):
                {"await asyncio" if kind == "async def" else "time"}.sleep(0.005)
                return f"{{n}} {{os.getpid()}}"
            """,
            "work",
        )

        async def ask(number: int) -> None:
            answers.append(await on.text("work", n=number))

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(ask, number)
    numbers, pids = zip(*(one.split() for one in answers), strict=True)
    assert sorted(map(int, numbers)) == list(range(50))
    assert len(set(pids)) == 1


async def test_a_call_that_takes_too_long_is_really_cancelled(tmp_path: Path) -> None:
    slow = Capability(name="slow", input_schema=ANYTHING, timeout=0.5)
    async with stage(tmp_path) as on:
        await on.put(
            """
            import asyncio
            from openfang.extension import tool

            stopped = 0

            @tool
            async def slow():
                global stopped
                try:
                    await asyncio.sleep(1000)
                finally:
                    stopped += 1

            @tool
            def stops(): return str(stopped)
            """,
            *(slow, "stops"),
        )
        assert await on.text("stops") == "0"
        with pytest.raises(CallTimedOut):
            await on.call("slow")
        assert await on.text("stops") == "1"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = 1", "main.py has no function with @tool for work"),
        (
            f"{IMPORT}@tool\ndef work(): pass\n@tool(name='work')\ndef other(): pass",
            "main.py has two functions for work",
        ),
        ("def work(:", "SyntaxError"),
        ("import nothing_like_this", "ModuleNotFoundError"),
    ],
)
async def test_what_cannot_be_loaded_says_why(tmp_path: Path, source: str, reason: str) -> None:
    async with stage(tmp_path) as on:
        await on.put(source, "work")
        with pytest.raises(SourceFailed) as caught:
            await on.call("work")
        assert reason in caught.value.message
        assert (on.state().how, on.state().pid) == ("failed", 0)
        assert reason in on.state().reason


def wheel(folder: Path) -> str:
    """Write a package, and the hash of its file."""
    file = folder / "fang_words-1.0-py3-none-any.whl"
    info = "fang_words-1.0.dist-info"
    about = "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with ZipFile(file, "w") as archive:
        archive.writestr("fang_words.py", "HELLO = 'from a package'")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: fang-words\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", about)
        archive.writestr(f"{info}/RECORD", "")
    return sha256(file.read_bytes()).hexdigest()


SAYS = """
import fang_words
from openfang.extension import tool

@tool
def work(): return fang_words.HELLO
"""


@pytest.mark.parametrize("pinned", ["fang-words==1.0", "fang-words==1.0 --hash=sha256:DIGEST"])
async def test_its_packages_are_in_an_environment_of_its_own(tmp_path: Path, pinned: str) -> None:
    pinned = pinned.replace("DIGEST", await to_thread.run_sync(wheel, tmp_path))
    packages = {"UV_FIND_LINKS": str(tmp_path), "UV_NO_INDEX": "1", "UV_OFFLINE": "1"}
    path = f"{Path(sys.executable).parent}:{DEFAULT_PATH}"
    async with stage(tmp_path, path=path, **packages) as on:
        await on.put(SAYS, "work", runtime={"requirements": (pinned,)})
        assert await on.text("work") == "from a package"
        kept = [one for one in (on.home / "extensions-env").iterdir() if one.is_dir()]
        assert len(kept) == 1


@pytest.mark.parametrize(
    "requirement",
    ["fang-words", "fang-words>=1.0", "fang-words==1.*", "-r other.txt", "x @ https://x.example/x"],
)
async def test_packages_that_are_not_pinned_are_refused(tmp_path: Path, requirement: str) -> None:
    async with stage(tmp_path) as on:
        await on.put(SAYS, "work", runtime={"requirements": (requirement,)})
        state = on.state()
        assert state.how == "failed"
        assert "is not pinned" in state.reason
        assert "NAME==VERSION" in state.way_out
        with pytest.raises(SourceFailed, match="is not pinned"):
            await on.call("work")


async def test_one_that_is_replaced_ends_what_it_began_and_the_new_one_answers(
    tmp_path: Path,
) -> None:
    source = """
        import asyncio, os
        from openfang.extension import tool

        @tool
        async def wait(context):
            context.log("began")
            while not os.path.exists("go"):
                await asyncio.sleep(0.01)
            return "VERSION"

        @tool
        def version(): return "VERSION"
        """
    answers: list[str] = []
    async with stage(tmp_path) as on:

        async def wait() -> None:
            answers.append(await on.text("wait"))

        await on.put(source.replace("VERSION", "old"), *("wait", "version"))
        first = 0
        with logged() as log:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await log.says("began")
                first = on.state().pid
                await on.put(source.replace("VERSION", "new"), *("wait", "version"), version="2")
                assert await on.text("version") == "new"
                assert on.state().pid != first
                (on.specs["tester"].workspace / "go").touch()
        assert answers == ["old"]
        await nothing_left(first)


async def test_one_that_is_dropped_takes_its_tools_and_its_process_along(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await on.put(f"{IMPORT}@tool\ndef work(): return '1'", "work")
        assert await on.text("work") == "1"
        pid = on.state().pid
        await on.extensions.drop("tester")
        await on.extensions.drop("tester")
        with pytest.raises(UnknownTool):
            await on.call("work")
        with pytest.raises(NotFound):
            on.state()
        await nothing_left(pid)


async def test_one_that_nobody_calls_ends_and_is_started_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        source = f"{IMPORT}@tool\ndef work(): return '1'"
        await on.put(source, "work", idle=0.1)
        assert on.state().how == "idle"
        assert await on.text("work") == "1"
        first = on.state().pid
        assert first
        await nothing_left(first)
        assert on.state().how == "idle"
        assert await on.text("work") == "1"
        assert (on.state().how, on.state().restarts) == ("running", 0)


async def nothing_left(pid: int) -> None:
    with anyio.fail_after(30):
        while await to_thread.run_sync(headcount, pid):
            pass


async def test_it_knows_the_variables_that_it_is_permitted_and_no_others(tmp_path: Path) -> None:
    source = """
        import os
        from openfang.extension import tool

        @tool
        def work(): return sorted(set(os.environ) - {"OPENFANG_RUN", "PWD"})
        """
    async with stage(tmp_path, WANTED="1", CANARY="2") as on:
        await on.put(source, "work", permissions=Permissions(variables=("WANTED",)))
        known = ["HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "TMPDIR", "WANTED"]
        assert await on.text("work") == str(known).replace("'", '"')
        unset = Permissions(variables=("UNSET",))
        await on.put(source, "work", name="unset", permissions=unset)
        assert "UNSET is not set" in on.state("unset").reason


async def test_a_secret_that_it_is_given_is_not_told_again(tmp_path: Path) -> None:
    source = f"import os\n{IMPORT}@tool\ndef work(): return os.environ['API_TOKEN'][::-1][::-1]"
    async with stage(tmp_path, API_TOKEN="k3-9fQz71mmPlw0aYtX") as on:
        await on.put(source, "work", permissions=Permissions(variables=("API_TOKEN",)))
        told = await on.text("work")
        assert told
        assert "9fQz71mmPlw0aYtX" not in told


def test_a_decorated_function_stays_what_it_is() -> None:
    """An author's own test calls it as any other."""

    @tool
    def add(a: int, b: int) -> int:
        return a + b

    @tool(name="other-name")
    def other() -> str:
        return "other"

    assert (add(1, 2), other()) == (3, "other")
    assert [name for name, _ in TOOLS[-2:]] == ["add", "other-name"]


@pytest.mark.requirement("C11.3")
async def test_a_compiled_copy_that_somebody_puts_there_is_not_started(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        source = f"import helper\n{IMPORT}@tool\ndef work(): return helper.WORD"
        spec = on.spec(source, "work")
        helper = spec.folder / "helper.py"
        await to_thread.run_sync(helper.write_text, "WORD = 'accepted'")
        files = await to_thread.run_sync(files_of, spec.folder)
        other = tmp_path / "other.py"
        other.write_text("WORD = 'changed'")
        copy = spec.folder / f"__pycache__/helper.{sys.implementation.cache_tag}.pyc"
        unchecked = PycInvalidationMode.UNCHECKED_HASH
        compiled(str(other), str(copy), invalidation_mode=unchecked)
        await on.extensions.put(replace(spec, digest=digest_of(files)))
        with pytest.raises(SourceFailed, match="not those that were accepted"):
            await on.call("work")
