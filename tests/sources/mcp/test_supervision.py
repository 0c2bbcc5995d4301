"""Supervision (C3.7): states, breaker, waking, replacing; and who waits for whom (C3.5)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.sources.mcp.hostility import GOOD, QUICK, entry, gone, hostile, scene, until

from openfang.app.local import Local
from openfang.config.load import load
from openfang.core.errors import CallTimedOut, GuardTripped, SourceFailed, UnknownTool
from openfang.core.trace import new_chain
from openfang.guard.breaker import Open
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sources.mcp.hostility import Scene

    from openfang.core.calls import Caller

pytestmark = pytest.mark.requirement("C3.7")
IMPATIENT = "timeout_secs = 0.3"


async def reload(node: Scene, *servers: str) -> None:
    """Put another configuration of these servers in force."""
    parts = node.app.parts
    text = "\n".join((*servers, entry("good", GOOD)))
    await anyio.Path(parts.home.config_file).write_text(text)
    environ = {"HOME": str(parts.home.path)}
    parts.config = await to_thread.run_sync(load, parts.home.path, environ)
    node.servers.apply(parts.config)


# The breaker


async def test_five_failures_open_the_breaker_and_one_probe_decides(tmp_path: Path) -> None:
    clock = ManualClock()
    async with scene(tmp_path, hostile(more=IMPATIENT), clock=clock) as node:
        for _ in range(5):
            assert isinstance(await node.fails("hang"), CallTimedOut)
        lists = node.bad._listed
        for _ in range(3):
            refused = await node.fails("echo", text="x")
            assert isinstance(refused, GuardTripped)
            assert refused.rule == "breaker_open"
            assert "did not answer within 0.3 s" in refused.message
            assert "30 s" in refused.way_out
        assert node.bad._listed == lists
        await node.app.call("mcp:good:echo", text="not my affair")
        clock.advance(29.9)
        assert isinstance(await node.fails("echo", text="x"), GuardTripped)
        clock.advance(0.2)
        assert isinstance(await node.fails("hang"), CallTimedOut)  # the probe
        assert isinstance(await node.fails("echo", text="x"), GuardTripped)
        clock.advance(31)
        assert (await node.call("echo", text="well")).text == "well"
        assert (await node.call("echo", text="again")).text == "again"


async def test_a_death_with_many_calls_in_flight_is_no_reason_to_stay_away(tmp_path: Path) -> None:
    """All of them fail at once, which opens the breaker; the server that is back closes it."""
    async with scene(tmp_path, hostile(), clock=ManualClock()) as node:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(node.fails, "hang")
            await until(lambda: node.app.parts.pipeline.guards.slots.used("mcp:bad") == 8)
            await node.fails("kill")
        breakers = node.app.parts.pipeline.guards.breakers
        assert isinstance(breakers.state("mcp:bad"), Open)
        with anyio.fail_after(20):
            await node.well()  # no second of the node's clock has passed
        assert breakers.size == 0


async def test_calls_that_waited_for_their_turn_do_not_wait_for_a_broken_server(
    tmp_path: Path,
) -> None:
    more = "timeout_secs = 0.5\nmax_concurrency = 5"
    async with scene(tmp_path, hostile(more=more)) as node:
        errors = list[object]()

        async def call() -> None:
            errors.append(await node.fails("hang"))

        began = anyio.current_time()
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(call)
        # One after the other, they would have taken ten seconds.
        assert anyio.current_time() - began < 9
        timed_out = [error for error in errors if isinstance(error, CallTimedOut)]
        assert len(timed_out) <= 10
        assert len(errors) == 100


async def test_a_server_and_an_extension_of_one_name_do_not_share_a_breaker(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, hostile(more=IMPATIENT)) as node:
        for _ in range(5):
            await node.fails("hang")
        breakers = node.app.parts.pipeline.guards.breakers
        assert isinstance(breakers.state("mcp:bad"), Open)
        assert breakers.look("ext:bad", node.app.parts.clock.monotonic()) is None


# States and attempts


async def test_a_server_that_dies_again_and_again_is_tried_less_and_less(tmp_path: Path) -> None:
    memory = tmp_path / "starts"
    async with scene(tmp_path / "home", hostile(f"memory={memory}")) as node:
        words = list[str]()
        for row in (1, 2, 3):
            await until(lambda: node.bad.connected)
            await node.fails("end")
            await until(lambda row=row: node.bad._row == row)
            words.append(node.servers.health()["bad"])
            assert node.bad.health.error == "It ended with exit code 7"
        # Its tools are still listed, and a call says at once what is wrong.
        assert node.app.parts.registry.find("mcp:bad:echo")
        assert words == ["degraded", "degraded", "unhealthy"]
        await node.well()
        assert node.servers.health()["bad"] == "healthy"


async def test_who_lasted_is_tried_again_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(), pace=replace(QUICK, steady=0.0)) as node:
        for _ in range(4):
            await until(lambda: node.bad.connected)
            await node.fails("end")
            await until(lambda: node.bad._row == 1)
        assert node.servers.health()["bad"] in {"degraded", "healthy"}


async def test_a_probe_that_fails_degrades_and_a_busy_server_is_not_killed(tmp_path: Path) -> None:
    pace = replace(QUICK, probe=0.2, probe_limit=0.2)
    async with scene(tmp_path, hostile(), pace=pace) as node:
        first = await node.process()
        # It reads nothing while it works, and tells of its progress.
        assert (await node.call("forever", seconds=2.0)).text == "at last"
        assert await node.process() == first


async def test_a_restart_does_not_wait_for_an_attempt_that_hangs(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile("start=silent"), settle=False) as node:
        node.servers.want()
        await until(lambda: node.servers.running.get("bad"))
        await until(lambda: node.bad._connecting)
        attempt = node.bad._connecting
        node.bad.restart()
        await until(lambda: node.bad._connecting not in {None, attempt})
        began = anyio.current_time()
        await reload(node)  # and one that is removed does not, either
        source = node.servers.running
        await until(lambda: "bad" not in source)
        assert anyio.current_time() - began < 10


# Sleeping and waking


@pytest.mark.requirement("C2.1")
async def test_a_lazy_server_wakes_on_the_first_call_of_a_tool_that_is_remembered(
    tmp_path: Path,
) -> None:
    memory = tmp_path / "starts"
    lazy = hostile(f"memory={memory}", more="lazy = true")
    async with scene(tmp_path / "home", lazy, settle=False) as node:
        node.servers.want()
        local = Local(node.app.parts, node.app.caller, new_chain(), edge="api")
        await until(lambda: node.servers.running.get("bad"))
        assert not await anyio.Path(memory).exists()
        with pytest.raises(UnknownTool):
            await local.call("mcp:other:echo", {})
        assert not await anyio.Path(memory).exists()
        # Nobody has ever heard of its tools: the name of one is enough.
        assert (await local.call("mcp_bad_echo", {"text": "first"})).text == "first"
    starts = await to_thread.run_sync(memory.read_text)
    async with scene(tmp_path / "home", lazy, settle=False) as node:
        node.servers.want()
        await until(lambda: node.app.parts.registry.find("mcp:bad:echo"))
        assert node.bad.health.word == "healthy"
        assert not node.app.parts.registry.snapshot.held
        assert await to_thread.run_sync(memory.read_text) == starts
        assert (await node.call("echo", text="awake")).text == "awake"
    async with scene(tmp_path / "home", lazy, settle=False) as node:
        node.servers.want()
        await until(lambda: node.servers.running.get("bad"))
        starts = await to_thread.run_sync(memory.read_text)
        await reload(node)  # removed in its sleep, it is not woken for that
        await until(lambda: "bad" not in node.servers.running)
        await anyio.lowlevel.checkpoint()
        assert await to_thread.run_sync(memory.read_text) == starts


# Replacing


@pytest.mark.requirement("C2.9")
@pytest.mark.parametrize("at_once", [1, 10])
async def test_only_what_changed_restarts_and_of_200_calls_none_is_lost(
    tmp_path: Path, at_once: int
) -> None:
    more = f"max_concurrency = {at_once}"
    async with scene(tmp_path, hostile(more=more), hostile(name="same")) as node:
        same, first = await node.process("same"), await node.process()
        answers = list[str]()

        async def call(number: int) -> None:
            answers.append((await node.call("echo", text=str(number))).text)

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(call, number)
            await until(lambda: len(answers) > 10)
            changed = hostile(more=f"{more}\ntimeout_secs = 19")
            await reload(node, changed, hostile(name="same"), hostile(name="added"))
            await until(lambda: len(answers) > 100)
            await reload(node, changed, hostile(name="same"))
        assert sorted(answers, key=int) == [str(number) for number in range(200)]
        assert await node.process("same") == same
        assert await node.process() != first
        await gone([first])


@pytest.mark.requirement("C2.9")
async def test_a_server_that_is_removed_ends_what_it_began(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(more="max_concurrency = 1")) as node:
        answers, pid = list[str](), await node.process()

        async def call(number: int) -> None:
            answers.append((await node.call("echo", text=str(number))).text)

        async with anyio.create_task_group() as group:
            group.start_soon(partial(node.call, "forever", seconds=1.0))
            slots = node.app.parts.pipeline.guards.slots
            await until(lambda: slots.used("mcp:bad") == 1)
            for number in range(50):
                group.start_soon(call, number)
            await until(lambda: slots.waiting("mcp:bad") == 50)
            await reload(node)
        assert len(answers) == 50
        with pytest.raises(UnknownTool):
            await node.call("echo")
        await until(lambda: "bad" not in node.servers.running)
        with anyio.fail_after(20):
            while True:
                try:
                    await gone([pid])
                except AssertionError:
                    await anyio.sleep(0.05)
                else:
                    break


@pytest.mark.requirement("C2.9", "C2.1")
async def test_what_the_operator_says_of_a_server_holds_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node:
        assert (await node.call("echo", text="x")).text == "x"
        await reload(node, hostile("start=exit", more='allow_tools = ["pid"]'))
        with pytest.raises(UnknownTool):
            await node.call("echo", text="x")
        await reload(node, hostile(more='allow_tools = ["nothing"]'))
        await node.servers.settled()
        for tool in ("echo", "pid"):
            with pytest.raises(UnknownTool):
                await node.call(tool)


# Who waits for whom


@pytest.mark.requirement("C3.5")
async def test_ten_at_once_and_whoever_waits_with_a_hundred_starves_nobody(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile(more="max_concurrency = 2")) as node:
        order = list[str]()
        slots = node.app.parts.pipeline.guards.slots
        many: Caller = replace(node.app.caller, id="key:many")
        few: Caller = replace(node.app.caller, id="key:few")

        async def call(caller: Caller) -> None:
            made = node.app.make("mcp:bad:echo", {"text": "x"}, caller=caller)
            await node.app.invoke(made)
            order.append(caller.id)

        async def hold() -> None:
            with anyio.move_on_after(30):
                await node.call("forever", seconds=0.5)

        async with anyio.create_task_group() as group:
            group.start_soon(hold)
            group.start_soon(hold)
            await until(lambda: slots.used("mcp:bad") == 2)
            for _ in range(100):
                group.start_soon(call, many)
            await until(lambda: slots.waiting("mcp:bad") == 100)
            for _ in range(5):
                group.start_soon(call, few)
            await until(lambda: slots.waiting("mcp:bad") == 105)
        last = max(index for index, who in enumerate(order) if who == "key:few")
        assert len(order) == 105
        assert last < 20  # and not at the end of a hundred
        assert slots.size == 0


@pytest.mark.requirement("C3.5")
async def test_no_more_than_ten_calls_reach_a_server_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node, anyio.create_task_group() as group:
        for _ in range(15):
            group.start_soon(node.fails, "hang")
        slots = node.app.parts.pipeline.guards.slots
        await until(lambda: slots.waiting("mcp:bad") == 5)
        *calls, _ours = (await _look(node))["calls"]
        assert len(calls) == 10
        group.cancel_scope.cancel()


async def _look(node: Scene) -> Any:
    """Ask the server itself, past the queue."""
    connection = node.bad._connection
    assert connection
    return (await connection.call("seen", {}))["structuredContent"]


@pytest.mark.requirement("C3.5")
async def test_the_callers_cancellation_reaches_the_server(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as node:
        async with anyio.create_task_group() as group:
            group.start_soon(node.call, "hang")
            await until(lambda: node.app.parts.pipeline.guards.slots.used("mcp:bad") == 1)
            await _look(node)
            group.cancel_scope.cancel()
        seen = await _look(node)
        cancelled = [one for one in seen["notes"] if one["method"] == "notifications/cancelled"]
        assert [one["params"]["requestId"] for one in cancelled] == [seen["calls"][0]]
        endings = [e for e in await node.app.events() if e.event_type == "tool_invocation_end"]
        assert [ending.payload["outcome"] for ending in endings] == ["cancelled"]


async def test_a_call_to_a_server_that_is_gone_fails_at_once_with_its_last_error(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, hostile("start=exit")) as node:
        source = node.bad
        with pytest.raises(SourceFailed) as caught:
            await source._ready()
        assert "It ended with exit code 5" in caught.value.message
        assert caught.value.way_out == "openfang servers show bad"
