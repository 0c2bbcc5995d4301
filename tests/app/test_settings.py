"""What each setting does, seen from outside: the same call, with and without it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from openfang.app.auth.identify import identify
from openfang.core.errors import CallTimedOut, GuardTripped, OpenFangError, Parked, PolicyViolation
from openfang.core.ids import Kind
from openfang.core.keys import Scope, Way
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.core.trace import read_chain
from openfang.testing import ManualClock, OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.1", "C2.8")


async def echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("text", "x"))


async def hang(_: Mapping[str, Any]) -> str:
    await anyio.sleep_forever()
    return ""


async def broken(_: Mapping[str, Any]) -> str:
    raise RuntimeError


def demo() -> TableSource:
    low: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
    return TableSource(
        Kind.MCP,
        "demo",
        {
            "echo": (low, echo),
            "poll": ({**low, "polls": True}, echo),
            "hang": (low, hang),
            "broken": (low, broken),
            "write": ({"risk": Risk.MEDIUM, "tags": frozenset({"fs.write"})}, echo),
            "deploy": ({"risk": Risk.HIGH, "tags": frozenset({"cloud.resource_create"})}, echo),
        },
    )


@asynccontextmanager
async def opened(
    folder: Path, config: str, clock: ManualClock | None = None
) -> AsyncGenerator[OpenApp]:
    agent = TableSource(
        Kind.AGENT, "a", {"a": ({"risk": Risk.LOW, "tags": frozenset[str]()}, echo)}
    )
    async with open_test_app(
        folder / "home", config=config, clock=clock, sources=[demo(), agent]
    ) as app:
        yield app


async def rule_of(app: OpenApp, tool: str, /, **fields: Any) -> str:
    """The rule that refuses the call, or nothing."""
    arguments = fields.pop("arguments", {})
    try:
        await app.invoke(app.make(tool, arguments, **fields))
    except GuardTripped as error:
        return error.rule
    except PolicyViolation as error:
        return error.rule
    except Parked:
        return "parked"
    except OpenFangError as error:
        return error.code
    return ""


async def rules_of(app: OpenApp, tool: str, count: int, **fields: Any) -> list[str]:
    return [await rule_of(app, tool, **fields) for _ in range(count)]


async def test_api_key_is_a_named_key_without_admin(tmp_path: Path) -> None:
    async with opened(tmp_path, 'api_key = "a-key-of-my-own"\n') as app:
        caller = await identify(app.parts, "a-key-of-my-own", "api")
        assert (caller.id, caller.admin) == ("key:config", False)
        with pytest.raises(OpenFangError):
            await identify(app.parts, "another", "api")
    async with opened(tmp_path / "unset", "") as app:
        with pytest.raises(OpenFangError):
            await identify(app.parts, "", "api")


async def test_limits_set_rate_burst_and_the_cost_of_a_call(tmp_path: Path) -> None:
    clock = ManualClock()
    config = "[limits]\ncells_per_minute = 60\nburst = 4\ncosts = { call = 2 }\n"
    async with opened(tmp_path, config, clock) as app:
        assert await rules_of(app, "mcp:demo:echo", 3) == ["", "", "rate_limit"]
        clock.advance(1.9)
        assert await rule_of(app, "mcp:demo:echo") == "rate_limit"
        clock.advance(0.1)
        assert await rule_of(app, "mcp:demo:echo") == ""


async def test_profile_decides_whether_a_person_may_stand_in_for_a_plan(tmp_path: Path) -> None:
    async with opened(tmp_path / "seed", '[policy]\nprofile = "seed"\n') as app:
        assert await rule_of(app, "mcp:demo:deploy") == "spec_not_frozen"
    async with opened(tmp_path / "guided", '[policy]\nprofile = "guided"\n') as app:
        assert await rule_of(app, "mcp:demo:deploy") == "parked"


async def test_blacklist_holds_for_everybody(tmp_path: Path) -> None:
    async with opened(tmp_path, '[policy]\nblacklist = ["fs.write"]\n') as app:
        assert await rule_of(app, "mcp:demo:write") == "side_effect_blacklisted"
        assert await rule_of(app, "mcp:demo:echo") == ""


async def test_fsync_sends_every_commit_to_the_disk(tmp_path: Path) -> None:
    async with opened(tmp_path, "[audit]\nfsync = true\n") as app:
        await app.call("mcp:demo:echo")
        slow = app.writer._slow
        assert slow is not None
        assert slow.read_now("PRAGMA synchronous") == [(2,)]


def _checkpoints(file: Path) -> list[int]:
    return [json.loads(line)["seq"] for line in file.read_text().splitlines()]


async def test_checkpoints_are_signed_after_so_many_records_in_the_file_named(
    tmp_path: Path,
) -> None:
    file = tmp_path / "elsewhere" / "points.jsonl"
    config = (
        f'[audit]\ncheckpoint_every = 6\ncheckpoint_seconds = 3600\ncheckpoint_file = "{file}"\n'
    )
    async with opened(tmp_path, config) as app:
        for _ in range(2):
            await app.call("mcp:demo:echo")
        with anyio.fail_after(20):
            while await to_thread.run_sync(_checkpoints, file) == [1]:
                await anyio.lowlevel.checkpoint()
    assert _checkpoints(file) == [1, 7]


async def test_checkpoints_are_signed_after_so_many_seconds(tmp_path: Path) -> None:
    config = "[audit]\ncheckpoint_every = 100000\ncheckpoint_seconds = 0.05\n"
    async with opened(tmp_path, config) as app:
        await app.call("mcp:demo:echo")
        with anyio.fail_after(20):
            while app.file.read_now("SELECT COUNT(*) FROM checkpoints") == [(1,)]:
                await anyio.lowlevel.checkpoint()


def _unkept(caplog: pytest.LogCaptureFixture) -> int:
    return sum(line.startswith("No checkpoint could be kept") for line in caplog.messages)


async def test_a_checkpoint_that_cannot_be_kept_is_not_tried_again_with_each_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "points.jsonl"
    config = (
        f'[audit]\ncheckpoint_every = 1\ncheckpoint_seconds = 3600\ncheckpoint_file = "{file}"\n'
    )
    async with opened(tmp_path, config) as app:
        began = anyio.current_time()
        kept = await to_thread.run_sync(file.rename, tmp_path / "kept")
        await to_thread.run_sync(file.mkdir)
        while not _unkept(caplog) or len(app.file.read_now("SELECT seq FROM audit")) < 100:
            await app.call("mcp:demo:echo")
        await to_thread.run_sync(file.rmdir)
        assert _unkept(caplog) <= 1 + anyio.current_time() - began
        with anyio.fail_after(20):
            while not await to_thread.run_sync(file.exists):
                await app.call("mcp:demo:echo")
    assert await to_thread.run_sync(_checkpoints, file)
    assert await to_thread.run_sync(_checkpoints, kept)


async def test_jsonl_gets_every_record_as_a_line(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    async with opened(tmp_path, f'[audit]\njsonl = "{file}"\n') as app:
        await app.call("mcp:demo:echo")
    async with opened(tmp_path, f'[audit]\njsonl = "{file}"\n') as app:
        await app.call("mcp:demo:echo")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["audit_id"] for line in lines] == list(range(1, 8))
    assert lines[2]["event_type"] == "tool_invocation_start"


async def test_stdout_gets_every_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with opened(tmp_path, "[audit]\nstdout = true\n") as app:
        await app.call("mcp:demo:echo")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["audit_id"] for line in lines] == [1, 2, 3, 4]


async def test_a_question_is_open_for_as_long_as_the_timeout_says(tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(tmp_path, "[approvals]\ntimeout_secs = 10\n", clock) as app:
        await rule_of(app, "mcp:demo:deploy")
        (question,) = await app.parts.approvals.store.pending(clock.time_ns())
        clock.advance(11)
        assert not await app.parts.approvals.store.pending(clock.time_ns())
        with pytest.raises(OpenFangError):
            await app.parts.approvals.answer(
                question.id, approve=True, by=app.caller.id, via=Way.API, scope=Scope.ONCE
            )


async def test_max_depth_is_how_deep_calls_go(tmp_path: Path) -> None:
    async with opened(tmp_path, "[guard]\nmax_depth = 2\n") as app:
        chain = read_chain(ancestors=("agent:x",))
        assert await rule_of(app, "mcp:demo:echo", chain=chain) == ""
        deeper = chain.deeper("agent:y")
        assert await rule_of(app, "mcp:demo:echo", chain=deeper) == "recursion_limit"


async def test_a_chain_and_a_run_have_budgets(tmp_path: Path) -> None:
    config = "[guard]\nagent_calls = 2\ntool_calls = 3\n"
    async with opened(tmp_path, config) as app:
        texts = [{"text": str(n)} for n in range(4)]
        run = [await rule_of(app, "mcp:demo:echo", arguments=text, run="r") for text in texts]
        assert run == ["", "", "", "run_budget"]
        outer = app.make("mcp:demo:hang", {}, chain=read_chain(starry_id="one"))
        chain: list[str] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.invoke, outer)
            await anyio.wait_all_tasks_blocked()
            inner = outer.chain.deeper("agent:z")
            chain = [
                await rule_of(app, "agent:a", arguments=text, chain=inner) for text in texts[:3]
            ]
            tasks.cancel_scope.cancel()
        assert chain == ["", "", "chain_budget"]


async def test_a_chain_has_so_many_calls_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path, "[guard]\ncalls_at_once = 1\n") as app:
        chain = read_chain(starry_id="one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.invoke, app.make("mcp:demo:hang", {}, chain=chain))
            await anyio.wait_all_tasks_blocked()
            assert await rule_of(app, "mcp:demo:echo", chain=chain) == "chain_concurrency"
            assert await rule_of(app, "mcp:demo:echo") == ""
            tasks.cancel_scope.cancel()


async def test_a_chain_ends_at_its_deadline(tmp_path: Path) -> None:
    async with opened(tmp_path, "[guard]\ndeadline_secs = 0.05\n") as app:
        with anyio.fail_after(20), pytest.raises(CallTimedOut):
            await app.call("mcp:demo:hang")


async def test_a_breaker_stays_open_for_as_long_as_it_says(tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(tmp_path, "[guard]\nbreaker_secs = 7\n", clock) as app:
        assert await rules_of(app, "mcp:demo:broken", 6) == ["source_failed"] * 5 + ["breaker_open"]
        clock.advance(6.9)
        assert await rule_of(app, "mcp:demo:echo") == "breaker_open"
        clock.advance(0.2)
        assert await rule_of(app, "mcp:demo:echo") == ""


async def test_loops_count_identical_calls(tmp_path: Path) -> None:
    config = "[loops]\nwarn = 2\nblock = 3\noutcome_warn = 50\noutcome_block = 60\n"
    async with opened(tmp_path, config) as app:
        first, second = [
            (await app.invoke(app.make("mcp:demo:echo", {}, run="r"))).text for _ in range(2)
        ]
        assert "loop guard" not in first
        assert "identical call 2" in second
        assert await rule_of(app, "mcp:demo:echo", run="r") == "identical_calls"


async def test_a_polling_tool_may_repeat_itself_more_often(tmp_path: Path) -> None:
    config = (
        "[loops]\nblock = 2\nwarn = 1\npoll_factor = 2\noutcome_warn = 50\noutcome_block = 60\n"
    )
    async with opened(tmp_path, config) as app:
        assert (await rules_of(app, "mcp:demo:echo", 2, run="a"))[1] == "identical_calls"
        polls = await rules_of(app, "mcp:demo:poll", 4, run="b")
        assert polls == ["", "", "", "identical_calls"]


async def test_loops_count_identical_outcomes(tmp_path: Path) -> None:
    config = "[loops]\nwarn = 50\nblock = 60\noutcome_warn = 1\noutcome_block = 2\n"
    async with opened(tmp_path, config) as app:
        first = (await app.invoke(app.make("mcp:demo:echo", {}, run="r"))).text
        assert "same result 1 times" in first
        assert await rules_of(app, "mcp:demo:echo", 2, run="r") == ["", "identical_outcome"]


async def test_a_run_without_progress_ends(tmp_path: Path) -> None:
    config = (
        "[loops]\nwarn = 50\nblock = 60\noutcome_warn = 50\noutcome_block = 60\nno_progress = 2\n"
    )
    async with opened(tmp_path, config) as app:
        rules = await rules_of(app, "mcp:demo:echo", 4, run="r")
        assert rules == ["", "", "", "no_progress"]


async def test_results_are_cut_and_kept_as_it_says(tmp_path: Path) -> None:
    clock = ManualClock()

    async def long(_: Mapping[str, Any]) -> Result:
        return text_result("a" * 30)

    async def picture(_: Mapping[str, Any]) -> Result:
        return Result(content=({"type": "image", "data": "YWJjZGVmZ2hpamtsbW5vcA=="},))

    low: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "big", {"long": (low, long), "picture": (low, picture)})
    config = "[results]\nmax_chars = 20\nmax_binary_bytes = 10\nkeep_secs = 5\n"
    async with open_test_app(
        tmp_path / "home", config=config, clock=clock, sources=[source]
    ) as app:
        result = await app.call("mcp:big:long")
        assert result.content[0]["text"] == "a" * 20
        assert "20 of 30" in result.content[1]["text"]
        assert (await app.call("mcp:big:picture")).text.startswith("[truncated:")
        blob = result.content[1]["text"].rstrip("]").rpartition("/")[2]
        clock.advance(4)
        assert await app.parts.blobs.get(blob, app.caller.id, clock.time_ns())
        clock.advance(2)
        assert not await app.parts.blobs.get(blob, app.caller.id, clock.time_ns())


async def test_a_tool_has_so_many_seconds(tmp_path: Path) -> None:
    async with opened(tmp_path, "[tools]\ntimeout_secs = 0.05\n") as app:
        with anyio.fail_after(20), pytest.raises(CallTimedOut):
            await app.call("mcp:demo:hang")


async def test_disabled_tools_leave_the_list_but_gate_1_answers(tmp_path: Path) -> None:
    async with opened(tmp_path, '[tools]\ndisabled = ["builtin:memory_*"]\n') as app:
        names = {tool.wire_name for tool in app.parts.catalog.list(app.caller)}
        assert "memory_store" not in names
        assert "file_read" in names
        arguments = {"key": "a"}
        assert await rule_of(app, "memory_recall", arguments=arguments) == "tool_disabled"
