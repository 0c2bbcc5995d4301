"""No ending is lost: whoever waits, whatever fails, a started call is ended or owed (C7.13)."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from openfang.core.errors import AuditUnavailable, Conflict, UnknownTool, Unrecorded
from openfang.core.events import Record
from openfang.core.ids import Kind
from openfang.core.tools import Risk
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.10", "C7.13")
LOW: Mapping[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
OPEN = (
    "SELECT COUNT(*) FROM audit a WHERE event = 'tool_invocation_start' AND NOT EXISTS (SELECT 1 "
    "FROM audit b WHERE b.event = 'tool_invocation_end' AND b.call_id = a.call_id)"
)


class Held:
    """Another process's lock on the database, from inside a tool."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.other: sqlite3.Connection | None = None

    def take(self) -> None:
        assert self.path
        self.other = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.other.execute("BEGIN IMMEDIATE")

    def release(self) -> None:
        assert self.other
        with closing(self.other) as other:
            other.execute("ROLLBACK")


def source(held: Held) -> TableSource:
    async def locks(_: Mapping[str, Any]) -> str:
        await to_thread.run_sync(held.take)
        return "ran"

    async def echo(_: Mapping[str, Any]) -> str:
        return "x"

    return TableSource(Kind.MCP, "demo", {"locks": (LOW, locks), "echo": (LOW, echo)})


def open_calls(app: OpenApp) -> int:
    return int(app.file.read_now(OPEN)[0][0])


@pytest.mark.usefixtures("hasty")
async def test_an_ending_whose_caller_went_away_while_it_failed_is_owed(tmp_path: Path) -> None:
    held = Held()
    async with open_test_app(tmp_path / "home", sources=[source(held)]) as app:
        held.path = app.file.path
        with anyio.move_on_after(0.2):
            await app.call("mcp:demo:locks")
        with anyio.fail_after(30):
            while not app.parts.broker._owed:
                await anyio.lowlevel.checkpoint()
        held.release()
        assert (await app.call("mcp:demo:echo")).text == "x"
        assert open_calls(app) == 0


async def test_an_ending_whose_caller_went_away_behind_a_debt_is_owed_too(tmp_path: Path) -> None:
    held = Held()
    running, go = anyio.Event(), anyio.Event()

    async def waits(_: Mapping[str, Any]) -> str:
        running.set()
        await go.wait()
        return "ran"

    waiting = TableSource(Kind.MCP, "slow", {"waits": (LOW, waits)})
    async with open_test_app(tmp_path / "home", sources=[waiting, source(held)]) as app:
        held.path = app.file.path
        broker = app.parts.broker
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.call, "mcp:slow:waits")
            await running.wait()
            held.take()
            broker._owed += broker.unit([Record(event="spec_frozen")]).lines
            go.set()
            with anyio.fail_after(30):
                while broker._owed:
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert [line.event for line in broker._owed] == ["tool_invocation_end"]
        held.release()
        assert (await app.call("mcp:demo:echo")).text == "x"
        assert open_calls(app) == 0


@pytest.mark.usefixtures("hasty")
async def test_what_is_owed_survives_a_unit_that_breaks_a_rule(tmp_path: Path) -> None:
    held = Held()
    async with open_test_app(tmp_path / "home", sources=[source(held)]) as app:
        held.path = app.file.path
        with anyio.fail_after(30), pytest.raises(Unrecorded):
            await app.call("mcp:demo:locks")
        held.release()
        twice = ("INSERT INTO projects VALUES ('default', 0)", ())
        with pytest.raises(Conflict):
            await app.parts.broker.append([Record(event="spec_frozen")], (twice,))
        assert open_calls(app) == 0


async def test_a_call_that_still_runs_at_the_end_is_ended_by_the_next_start(
    tmp_path: Path,
) -> None:
    async def hang(_: Mapping[str, Any]) -> str:
        await anyio.sleep_forever()
        return ""

    hanging = TableSource(Kind.MCP, "demo", {"hang": (LOW, hang)})

    async def left_behind(app: OpenApp) -> None:
        with suppress(Unrecorded):
            await app.call("mcp:demo:hang")

    async with anyio.create_task_group() as tasks:
        async with open_test_app(tmp_path / "home", sources=[hanging]) as app:
            tasks.start_soon(left_behind, app)
            await anyio.wait_all_tasks_blocked()
            assert open_calls(app) == 1
        async with open_test_app(tmp_path / "home") as app:
            assert open_calls(app) == 0
            (outcome,) = app.file.read_now(
                "SELECT json_extract(payload, '$.outcome') FROM audit "
                "WHERE event = 'tool_invocation_end'"
            )
            assert outcome == ("interrupted",)
        tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("hasty")
async def test_a_process_whose_first_start_failed_is_known_by_its_second(tmp_path: Path) -> None:
    held = Held()
    async with open_test_app(tmp_path / "home", sources=[source(held)]) as app:
        held.path = app.file.path
        held.take()
        with anyio.fail_after(30), pytest.raises(AuditUnavailable):
            await app.call("mcp:demo:echo")
        held.release()
        await app.call("mcp:demo:echo")
        assert app.file.read_now("SELECT COUNT(*) FROM processes") == [(1,)]


@contextmanager
def unwritable(app: OpenApp) -> Generator[None]:
    """A database that refuses every change at once."""
    connection = app.writer._database.connection
    connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA query_only = OFF")


async def test_who_cannot_record_says_so_until_it_can(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home", sources=[source(Held())]) as app:
        broker = app.parts.broker
        assert not broker.failing
        with unwritable(app):
            with pytest.raises(AuditUnavailable):
                await app.call("mcp:demo:echo")
            await broker.try_again()
            assert broker.failing
            assert (broker.in_flight, broker.unfinished) == (0, False)
        await broker.try_again()
        assert not broker.failing


async def test_an_ending_that_cannot_be_written_is_owed_until_it_can(tmp_path: Path) -> None:
    running, go = anyio.Event(), anyio.Event()

    async def waits(_: Mapping[str, Any]) -> str:
        running.set()
        await go.wait()
        return "ran"

    async def call() -> None:
        with pytest.raises(Unrecorded):
            await app.call("mcp:slow:waits")

    waiting = TableSource(Kind.MCP, "slow", {"waits": (LOW, waits)})
    async with open_test_app(tmp_path / "home", sources=[source(Held()), waiting]) as app:
        broker = app.parts.broker
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await running.wait()
            with unwritable(app):
                go.set()
                with anyio.fail_after(30):
                    while not broker._owed:
                        await anyio.lowlevel.checkpoint()
                for tool in ("mcp:demo:echo", "mcp:demo:unknown"):
                    with pytest.raises(AuditUnavailable):
                        await app.call(tool)
                    assert [line.event for line in broker._owed] == ["tool_invocation_end"]
                assert (open_calls(app), broker.in_flight) == (1, 0)
        with pytest.raises(UnknownTool):
            await app.call("mcp:demo:unknown")
        assert (open_calls(app), broker.unfinished) == (0, False)


async def test_a_call_is_in_flight_until_its_ending_is_on_record(tmp_path: Path) -> None:
    seen: list[tuple[int, bool, int]] = []

    async def looks(_: Mapping[str, Any]) -> str:
        seen.append((broker.in_flight, broker.unfinished, broker.low_water))
        return "looked"

    looking = TableSource(Kind.MCP, "demo", {"looks": (LOW, looks)})
    async with open_test_app(tmp_path / "home", sources=[looking]) as app:
        broker = app.parts.broker
        first = broker.writer.head.seq + 1
        await app.call("mcp:demo:looks")
        assert seen == [(1, True, first)]
        after = broker.writer.head.seq + 1
        assert (broker.in_flight, broker.unfinished, broker.low_water) == (0, False, after)
        assert after > first


async def test_what_is_owed_is_written_when_the_node_settles(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home") as app:
        broker = app.parts.broker
        broker._owed += broker.unit([Record(event="spec_frozen", payload={"a": 1})]).lines
        assert broker.unfinished
        await broker.settle()
        assert not broker.unfinished
        last = "SELECT event, payload FROM audit ORDER BY seq DESC LIMIT 1"
        assert app.file.read_now(last) == [("spec_frozen", '{"a":1}')]


async def test_what_is_owed_goes_in_front_of_whatever_is_recorded_next(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home") as app:
        broker = app.parts.broker
        broker._owed += broker.unit([Record(event="spec_frozen")]).lines
        numbers = await broker.append([Record(event="policy_decision")])
        told = app.file.read_now("SELECT seq, event FROM audit ORDER BY seq DESC LIMIT 2")
        last = broker.writer.head.seq
        assert told == [(last, "policy_decision"), (last - 1, "spec_frozen")]
        assert [*numbers] == [last]


async def test_what_is_owed_stays_owed_while_nothing_can_be_written(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home", sources=[source(Held())]) as app:
        broker = app.parts.broker
        broker._owed += broker.unit([Record(event="spec_frozen")]).lines
        with unwritable(app), pytest.raises(AuditUnavailable):
            await app.call("mcp:demo:echo")
        assert [line.event for line in broker._owed] == ["spec_frozen"]
        await app.call("mcp:demo:echo")
        told = app.file.read_now("SELECT event FROM audit ORDER BY seq DESC LIMIT 4")
        assert [event for (event,) in told][::-1] == [
            "spec_frozen",
            "policy_decision",
            "tool_invocation_start",
            "tool_invocation_end",
        ]
