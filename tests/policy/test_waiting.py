"""Calls that wait for a person: woken by the answer, few at once, and parked when the node ends."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.policy.test_approvals import TOOL, answer, done

from openfang.core.calls import Caller, Role
from openfang.core.errors import CallRefused, GuardTripped, Parked
from openfang.core.ids import Kind
from openfang.core.keys import Way
from openfang.core.tools import Risk
from openfang.policy import waits
from openfang.testing import OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C15.3")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    facts = {"risk": Risk.HIGH, "tags": frozenset({"cloud.resource_create"})}
    source = TableSource(Kind.MCP, "demo", {"deploy": (facts, done)})
    async with open_test_app(tmp_path / "home", sources=[source]) as opened:
        yield opened


def caller(app: OpenApp, name: str, role: Role = Role.USER) -> Caller:
    return replace(app.caller, id=f"key:{name}", role=role)


async def wait(app: OpenApp, ended: list[str], who: Caller, to: str = "prod") -> None:
    call = app.make(TOOL, {"to": to}, patience=60.0, caller=who)
    try:
        ended.append((await app.invoke(call)).text)
    except CallRefused as refusal:
        ended.append(refusal.code)


@asynccontextmanager
async def waiting(app: OpenApp, *callers: Caller) -> AsyncGenerator[list[str]]:
    """Let a call of each wait; what became of them is in the list afterwards."""
    ended: list[str] = []
    store = app.parts.approvals.store
    open_ones = await store.count_pending(0) + len(callers)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for number, who in enumerate(callers):
                tasks.start_soon(wait, app, ended, who, str(number))
            while await store.count_pending(0) < open_ones:
                await anyio.lowlevel.checkpoint()
            yield ended


@contextmanager
def asked(app: OpenApp) -> Generator[list[str]]:
    """Collect what the database is asked about questions meanwhile."""
    found: list[str] = []
    connection = app.file.connection
    connection.set_trace_callback(lambda sql: found.append(sql) if "approvals" in sql else None)
    try:
        yield found
    finally:
        connection.set_trace_callback(None)


async def test_the_answer_wakes_who_waits_and_nobody_reads_the_arguments_meanwhile(
    app: OpenApp,
) -> None:
    async with waiting(app, app.caller) as ended:
        (question,) = await app.parts.approvals.store.pending(0)
        with asked(app) as reads, anyio.fail_after(30):
            # Longer than a look at what others answered takes to come round.
            await anyio.sleep(1.2)
            assert {sql.split("WHERE")[0] for sql in reads} == {"SELECT id FROM approvals "}
            assert len(reads) <= 2
            await answer(app, question.id, approve=True)
            while not ended:
                await anyio.lowlevel.checkpoint()
    assert ended == ["done"]


async def deny_elsewhere(app: OpenApp) -> str:
    """Answer the one open question as another process does: nobody here is told."""
    elsewhere = replace(app.parts.approvals)
    (question,) = await elsewhere.store.pending(0)
    await elsewhere.answer(question.id, approve=False, by=app.caller.id, via=Way.API)
    return question.id


async def until(held: Callable[[], object]) -> None:
    with anyio.fail_after(30):
        while not held():
            await anyio.lowlevel.checkpoint()


async def test_what_another_process_answered_is_seen_too_whenever_it_comes(
    app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "_LOOK_SECONDS", 0.02)
    async with waiting(app, app.caller) as ended:
        with asked(app) as reads:
            await until(lambda: len(reads) > 1)
        await deny_elsewhere(app)
    assert ended == ["policy_violation"]


@pytest.mark.parametrize("named", [True, False])
async def test_who_is_told_that_something_was_answered_elsewhere_looks_at_once(
    app: OpenApp, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    monkeypatch.setattr(waits, "_LOOK_SECONDS", 60.0)
    async with waiting(app, app.caller) as ended:
        question = await deny_elsewhere(app)
        app.parts.approvals.waits._hear(question if named else "")
    assert ended == ["policy_violation"]


async def test_a_look_that_fails_is_told_and_is_not_the_last(
    app: OpenApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waits, "_LOOK_SECONDS", 0.02)
    async with waiting(app, app.caller) as ended:
        app.file.connection.execute("ALTER TABLE approvals RENAME TO away")
        await until(lambda: "What others answered cannot be seen" in caplog.text)
        app.file.connection.execute("ALTER TABLE away RENAME TO approvals")
        await deny_elsewhere(app)
    assert ended == ["policy_violation"]


async def test_of_one_caller_only_so_many_wait_and_the_next_asks_nothing(app: OpenApp) -> None:
    approvals, busy = app.parts.approvals, caller(app, "busy")
    async with waiting(app, *[busy] * 20) as ended:
        with pytest.raises(GuardTripped) as caught:
            await app.invoke(app.make(TOOL, {"to": "more"}, patience=60.0, caller=busy))
        assert caught.value.rule == "too_many_waiting"
        assert await approvals.store.count_pending(0) == len(approvals.waits) == 20
        with pytest.raises(Parked):
            await app.invoke(app.make(TOOL, {"to": "more"}, caller=busy))
        (*_, first) = await approvals.store.pending(0)
        await answer(app, first.id, approve=False)
        await until(lambda: ended)
        assert len(approvals.waits) == 19
        async with waiting(app, caller(app, "other")):
            for question in await approvals.store.pending(0):
                await answer(app, question.id, approve=False)
    assert ended == ["policy_violation"] * 20
    assert len(approvals.waits) == 0


async def test_of_all_only_so_many_wait_and_an_administrator_still_can(app: OpenApp) -> None:
    approvals = app.parts.approvals
    approvals.waits.most = 2
    async with waiting(app, caller(app, "one"), caller(app, "two")) as ended:
        late: list[str] = []
        await wait(app, late, caller(app, "three"))
        assert late == ["guard"]
        async with waiting(app, caller(app, "admin", Role.ADMIN)) as admins:
            assert len(approvals.waits) == 3
            approvals.end_waits()
    assert (ended, admins) == (["parked"] * 2, ["parked"])


async def test_when_the_node_ends_everybody_is_parked_at_once(app: OpenApp) -> None:
    async with waiting(app, app.caller, caller(app, "other")) as ended:
        with anyio.fail_after(0.9):
            app.parts.approvals.end_waits()
            while len(ended) < 2:
                await anyio.lowlevel.checkpoint()
            await wait(app, ended, app.caller, "later")
    assert ended == ["parked"] * 3
    assert await app.parts.approvals.store.count_pending(0) == 3
