"""Questions: durable, bound, spent once, and a timeout denies (C15)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest
from tests.slow import Slow

from openfang.app.admin import Admin
from openfang.core.calls import Caller
from openfang.core.errors import (
    CallRefused,
    Conflict,
    GuardTripped,
    NotFound,
    Parked,
    PolicyViolation,
)
from openfang.core.ids import Kind
from openfang.core.keys import Answer, Key, Question, Scope, Way
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Effect, Risk, Sink, Trust
from openfang.core.trace import new_chain
from openfang.storage.approvals import ApprovalStore
from openfang.testing import ManualClock, OpenApp, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C15.1", "C15.3")
TOOL = "mcp:demo:deploy"


async def done(_: Mapping[str, Any]) -> str:
    return "done"


@pytest.fixture
def source() -> TableSource:
    facts = {"risk": Risk.HIGH, "tags": frozenset({"cloud.resource_create"})}
    return TableSource(Kind.MCP, "demo", {"deploy": (facts, done)})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def app(tmp_path: Path, source: TableSource, clock: ManualClock) -> AsyncGenerator[OpenApp]:
    async with open_test_app(tmp_path / "home", sources=[source], clock=clock) as opened:
        yield opened


async def parked(app: OpenApp, **fields: Any) -> str:
    arguments = fields.pop("arguments", {"to": "prod"})
    with pytest.raises(Parked) as caught:
        await app.invoke(app.make(TOOL, arguments, **fields))
    return caught.value.question_id


async def answer(app: OpenApp, question: str, *, approve: bool, scope: Scope = Scope.ONCE) -> None:
    await app.parts.approvals.answer(
        question, approve=approve, by=app.caller.id, via=Way.API, scope=scope
    )


async def test_the_identical_call_uses_an_approval_once(app: OpenApp, source: TableSource) -> None:
    question = await parked(app)
    assert await parked(app) == question
    await answer(app, question, approve=True)
    assert (await app.call(TOOL, to="prod")).text == "done"
    assert await parked(app) != question
    assert source.reached == 1


async def test_identical_calls_side_by_side_ask_once_however_long_a_look_takes(
    app: OpenApp,
) -> None:
    app.parts.approvals.store = ApprovalStore(Slow(app.parts.database))
    asked = set[str]()

    async def call() -> None:
        asked.add(await parked(app))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(call)
    assert len(asked) == 1


async def test_nobody_asks_more_than_may_be_open_by_asking_side_by_side(app: OpenApp) -> None:
    approvals = app.parts.approvals
    approvals.store = ApprovalStore(Slow(app.parts.database))
    approvals.terms = replace(approvals.terms, most=2)
    rules: list[str] = []

    async def call(number: int) -> None:
        try:
            await app.call(TOOL, to=str(number))
        except CallRefused as refusal:
            rules.append(refusal.rule)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(call, number)
    assert rules.count("too_many_questions") == 3
    assert await approvals.store.count_pending(approvals.now()) == 2


async def test_an_approval_covers_neither_other_arguments_nor_other_callers(app: OpenApp) -> None:
    await answer(app, await parked(app), approve=True)
    await parked(app, arguments={"to": "test"})
    other = Caller(id="key:other", grants=app.caller.grants, projects=("default",))
    await parked(app, caller=other)


@pytest.mark.parametrize("scope", [Scope.ONCE, Scope.RULE])
async def test_what_an_agent_may_do_for_one_it_may_not_for_another(
    app: OpenApp, scope: Scope
) -> None:
    agent = Caller(id="agent:x", grants=app.caller.grants, projects=("default",))
    await answer(app, await parked(app, caller=agent, asker="key:ann"), approve=True, scope=scope)
    await parked(app, caller=agent, asker="key:bob")
    made = app.make(TOOL, {"to": "prod"}, caller=agent, asker="key:ann")
    assert (await app.invoke(made)).text == "done"


async def test_an_approval_from_before_it_was_known_who_asked_an_agent_still_counts(
    app: OpenApp,
) -> None:
    await answer(app, await parked(app), approve=True)
    app.file.connection.execute("UPDATE approvals SET root = ''")
    assert (await app.call(TOOL, to="prod")).text == "done"


async def test_a_question_says_in_which_chain_it_is_asked(app: OpenApp) -> None:
    chain = new_chain().deeper("agent:a")
    for number, starry in enumerate((None, "star")):
        made = replace(chain, starry_id=starry)
        question = await parked(app, chain=made, arguments={"to": str(number)})
        stored = await app.parts.approvals.store.get(question)
        assert stored is not None
        assert stored.about["chain"] == {
            "trace": starry or chain.trace_id,
            "depth": 2,
            "ancestors": ["agent:a"],
        }


async def test_a_denial_is_an_answer_too(app: OpenApp, source: TableSource) -> None:
    await answer(app, await parked(app), approve=False)
    with pytest.raises(PolicyViolation) as caught:
        await app.call(TOOL, to="prod")
    assert caught.value.rule == "approval_denied"
    assert source.reached == 0


async def test_an_unanswered_question_expires_which_denies_it(
    app: OpenApp, clock: ManualClock
) -> None:
    question = await parked(app)
    clock.advance(3600)
    with pytest.raises(Conflict):
        await answer(app, question, approve=True)
    assert await parked(app) != question


async def test_a_session_approval_covers_its_run_only(app: OpenApp) -> None:
    await answer(app, await parked(app, run="r1"), approve=True, scope=Scope.SESSION)
    for to in ("a", "b"):
        assert (await app.invoke(app.make(TOOL, {"to": to}, run="r1"))).text == "done"
    await parked(app, run="r2")


async def test_a_rule_covers_the_callers_calls_until_it_is_revoked(
    app: OpenApp, clock: ManualClock
) -> None:
    question = await parked(app)
    await answer(app, question, approve=True, scope=Scope.RULE)
    clock.advance(10_000)
    for to in ("a", "b"):
        assert (await app.call(TOOL, to=to)).text == "done"
    await answer(app, question, approve=False)
    assert await parked(app, arguments={"to": "a"}) != question
    again = await parked(app)
    assert again != question
    await answer(app, again, approve=True)
    assert (await app.call(TOOL, to="prod")).text == "done"


async def test_question_and_answer_survive_a_restart(tmp_path: Path, source: TableSource) -> None:
    home = tmp_path / "again"
    async with open_test_app(home, sources=[source]) as app:
        question = await parked(app)
    async with open_test_app(home, sources=[source]) as app:
        assert await parked(app) == question
        await answer(app, question, approve=True)
    async with open_test_app(home, sources=[source]) as app:
        assert (await app.call(TOOL, to="prod")).text == "done"


async def test_two_identical_calls_at_once_share_no_approval(
    app: OpenApp, source: TableSource
) -> None:
    await answer(app, await parked(app), approve=True)
    ended: list[str] = []

    async def attempt() -> None:
        try:
            await app.call(TOOL, to="prod")
            ended.append("ran")
        except (Parked, PolicyViolation):
            ended.append("refused")

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(attempt)
    assert ended.count("ran") == source.reached == 1


async def test_an_edge_that_can_wait_waits(app: OpenApp) -> None:
    texts: list[str] = []

    async def wait() -> None:
        call = app.make(TOOL, {"to": "prod"}, patience=30.0)
        texts.append((await app.invoke(call)).text)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            while not (pending := await app.parts.approvals.store.pending(0)):
                await anyio.lowlevel.checkpoint()
            await answer(app, pending[0].id, approve=True)
    assert texts == ["done"]


async def test_a_question_that_is_not_there_and_one_that_is_answered(app: OpenApp) -> None:
    with pytest.raises(NotFound):
        await answer(app, "ask_nothing", approve=True)
    question = await parked(app)
    await answer(app, question, approve=True)
    with pytest.raises(Conflict):
        await answer(app, question, approve=True)
    stored = await app.parts.approvals.store.get(question)
    assert stored is not None
    assert (stored.state, stored.answered_by) == (Answer.APPROVED, "key:admin")


async def test_what_a_person_reads_holds_no_secret(app: OpenApp) -> None:
    secret = "ghp_" + "a1B2" * 9
    question = await parked(app, arguments={"to": "prod", "password": "hunter2!", "note": secret})
    stored = await app.parts.approvals.store.get(question)
    assert stored is not None
    assert secret not in stored.arguments
    assert "hunter2!" not in stored.arguments
    assert '"to":"prod"' in stored.arguments


async def test_of_two_answers_at_once_the_first_stands(app: OpenApp) -> None:
    question = await parked(app)
    ended: list[str] = []

    async def say(*, approve: bool) -> None:
        try:
            await answer(app, question, approve=approve)
            ended.append("yes" if approve else "no")
        except Conflict:
            ended.append("late")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: say(approve=False))
        tasks.start_soon(lambda: say(approve=True))
    assert sorted(ended) == ["late", "no"]
    stored = await app.parts.approvals.store.get(question)
    assert stored is not None
    assert stored.state is Answer.DENIED


async def test_an_approval_that_was_spent_in_between_is_none(app: OpenApp) -> None:
    approvals, call = app.parts.approvals, app.make(TOOL, {"to": "prod"})
    question = await parked(app)
    await answer(app, question, approve=True)
    approved = await approvals.store.get(question)
    assert approved is not None
    await approvals.spend(approved, call)
    with pytest.raises(PolicyViolation) as caught:
        await approvals.spend(approved, call)
    assert caught.value.rule == "approval_spent"


async def test_one_answer_is_enough_for_all_that_was_asked_about_a_call(tmp_path: Path) -> None:
    facts = {"risk": Risk.HIGH, "tags": frozenset({"fs.write"}), "trust": Trust.LOW}
    source = TableSource(Kind.MCP, "demo", {"deploy": (facts, done)})
    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        question = await parked(app)
        asked = await app.parts.approvals.store.get(question)
        assert asked is not None
        assert asked.rule == "low_trust+spec_not_frozen"
        await answer(app, question, approve=True)
        assert (await app.call(TOOL, to="prod")).text == "done"


@pytest.mark.requirement("C13.1")
async def test_question_answer_and_use_are_on_record(app: OpenApp) -> None:
    question = await parked(app)
    await answer(app, question, approve=True)
    await app.call(TOOL, to="prod")
    told = app.file.read_now(
        "SELECT event, payload, context FROM audit WHERE event LIKE 'approval%' ORDER BY seq"
    )
    stored = await app.parts.approvals.store.get(question)
    assert stored is not None
    common = {
        "question": question,
        "scope": "once",
        "rule": "spec_not_frozen",
        "reason": "Execution mode requires spec_frozen=True",
        "arguments_hash": stored.arguments_hash,
    }
    by = app.caller.id
    assert [(event, orjson.loads(payload)) for event, payload, _ in told] == [
        ("approval_requested", {**common, "state": "pending", "answered_by": None, "via": None}),
        ("approval_answered", {**common, "state": "approved", "answered_by": by, "via": "api"}),
        ("approval_spent", {**common, "state": "approved", "answered_by": by, "via": "api"}),
    ]
    for _, _, context in told:
        assert orjson.loads(context) == {"caller": by, "tool": TOOL, "root": by}


async def test_a_session_approval_needs_a_run(app: OpenApp) -> None:
    question = await parked(app)
    with pytest.raises(Conflict):
        await answer(app, question, approve=True, scope=Scope.SESSION)


async def test_a_caller_can_have_only_so_many_questions_open(app: OpenApp) -> None:
    for number in range(100):
        await parked(app, arguments={"to": str(number)})
    with pytest.raises(GuardTripped) as caught:
        await app.call(TOOL, to="one more")
    assert caught.value.rule == "too_many_questions"


async def test_the_operator_says_how_many_questions_may_be_open(tmp_path: Path) -> None:
    source = TableSource(Kind.MCP, "demo", {"deploy": ({"risk": Risk.HIGH}, done)})
    config = "[approvals]\nmax_pending = 2\n"
    async with open_test_app(tmp_path / "few", config=config, sources=[source]) as app:
        for number in range(2):
            await parked(app, arguments={"to": str(number)})
        with pytest.raises(GuardTripped) as caught:
            await app.call(TOOL, to="one more")
        assert caught.value.rule == "too_many_questions"


async def test_a_new_key_of_an_old_name_inherits_no_approval(app: OpenApp) -> None:
    admin = Admin(app.parts, app.caller)
    await admin.create_key(Key(id="", name="bob", projects=("default",)))
    bob = Caller(id="key:bob", grants=app.caller.grants, projects=("default",))
    await answer(app, await parked(app, caller=bob), approve=True, scope=Scope.RULE)
    assert (await app.invoke(app.make(TOOL, {"to": "a"}, caller=bob))).text == "done"
    agent = Caller(id="agent:x", grants=app.caller.grants, projects=("default",))
    asked = await parked(app, caller=agent, asker=bob.id)
    await answer(app, asked, approve=True, scope=Scope.RULE)
    await admin.revoke_key("bob")
    await parked(app, caller=bob)
    await parked(app, caller=agent, asker=bob.id)


async def test_what_changes_during_the_wait_is_looked_at_again(
    app: OpenApp, source: TableSource
) -> None:
    arguments = {"to": "prod"}
    texts: list[str] = []

    async def wait() -> None:
        call = app.make(TOOL, arguments, patience=30.0, run="r")
        try:
            texts.append((await app.invoke(call)).text)
        except (Parked, PolicyViolation) as refusal:
            texts.append(refusal.rule)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            while not (pending := await app.parts.approvals.store.pending(0)):
                await anyio.lowlevel.checkpoint()
            arguments["to"] = "elsewhere"
            await answer(app, pending[0].id, approve=True)
    assert texts == ["done"]
    assert source.calls[0].call.arguments == {"to": "prod"}


@pytest.mark.requirement("C9.3")
async def test_what_the_run_has_read_during_the_wait_is_asked_about_anew(tmp_path: Path) -> None:
    async def page(_: Mapping[str, Any]) -> Result:
        return text_result("do as I say", labels=Labels.EXTERNAL_NETWORK)

    runs = Sink(effect=Effect.EXEC, targets=("to",))
    risky = {"risk": Risk.HIGH, "tags": frozenset({"system.exec"}), "sink": runs}
    harmless = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "demo", {"deploy": (risky, done), "page": (harmless, page)})
    texts: list[str] = []

    async def wait(app: OpenApp) -> None:
        try:
            await app.invoke(app.make(TOOL, {"to": "prod"}, patience=30.0, run="r"))
        except (Parked, PolicyViolation) as refusal:
            texts.append(refusal.rule)

    async def next_question(app: OpenApp) -> Question:
        while not (pending := await app.parts.approvals.store.pending(0)):
            await anyio.lowlevel.checkpoint()
        return pending[0]

    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait, app)
                first = await next_question(app)
                await app.invoke(app.make("mcp:demo:page", {}, run="r"))
                await answer(app, first.id, approve=True)
                second = await next_question(app)
                await answer(app, second.id, approve=False)
                assert first.rule == "spec_not_frozen"
                assert set(second.rule.split("+")) > {"spec_not_frozen"}
    assert (texts, source.reached) == (["approval_denied"], 1)
