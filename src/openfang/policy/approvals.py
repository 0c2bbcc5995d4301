"""Questions: durable, bound to caller, tool and arguments, answered by a person, spent once."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import orjson

from openfang.core.errors import (
    Conflict,
    GuardTripped,
    NotFound,
    OpenFangError,
    Parked,
    PolicyViolation,
)
from openfang.core.events import APPROVAL_ANSWERED, APPROVAL_REQUESTED, APPROVAL_SPENT, Record
from openfang.core.ids import new_id
from openfang.core.keys import Answer, Question, Scope, Way
from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.policy.answerers import wants_four_eyes
from openfang.policy.showing import may_be_shown, show
from openfang.policy.waits import Waits
from openfang.storage import approvals as rows
from openfang.storage.units import APPROVALS, TIMERS, Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from openfang.core.calls import Call
    from openfang.core.clients import Client
    from openfang.core.decisions import Verdict
    from openfang.core.tools import Tool
    from openfang.storage.approvals import ApprovalStore, Statement

_log = logging.getLogger("openfang.approvals")
_SECOND: Final = 1_000_000_000
_NEVER: Final = 2**62
_AT_ONCE: Final = 500
_LOOK_AGAIN_NS: Final = 600 * _SECOND


class Append(Protocol):
    """How a change and its record become durable together."""

    async def __call__(
        self,
        records: Sequence[Record],
        statements: tuple[tuple[str, Sequence[Any]], ...] = (),
        notices: tuple[Notice, ...] = (),
    ) -> Sequence[int]:
        """Write both, or neither."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a question is about: a call of a tool with exactly these arguments."""

    call: Call
    tool: Tool
    arguments: str
    arguments_hash: str
    labels: Labels = Labels.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the operator says of questions.

    `most` are open at once of one caller; `four_eyes` are tools whose askers may not answer;
    `ask_clients` is whether the person at the client of a call may.
    """

    timeout_ns: int = 3600 * _SECOND
    most: int = 100
    four_eyes: tuple[str, ...] = ()
    ask_clients: bool = True


def _no_outbox(question: Question) -> Sequence[Statement]:
    del question
    return ()


def _nothing() -> None:
    """Nobody waits for it."""


@dataclass(slots=True, kw_only=True)
class Approvals:
    """Asks, and finds what was answered. `now` is the wall clock in nanoseconds.

    `outbox` says what goes into the unit of a new question for whoever is to be told of it;
    `committed` is called when that is written.
    """

    store: ApprovalStore
    append: Append
    redact: Callable[[str], str]
    now: Callable[[], int]
    terms: Terms = Terms()
    outbox: Callable[[Question], Sequence[Statement]] = _no_outbox
    committed: Callable[[], None] = _nothing
    waits: Waits = field(init=False)
    _asking: anyio.Lock = field(init=False, default_factory=lambda: anyio.Lock(fast_acquire=True))

    def __post_init__(self) -> None:
        self.waits = Waits(self.store)

    async def find(self, subject: Subject, rule: str) -> Question | None:
        """Find an answer, or an open question, that covers this call. Changes nothing.

        What an agent was allowed for one who asked it is not allowed for another.
        """
        call, codes = subject.call, set(rule.split("+"))
        found = await self.store.covering(
            call.caller.id, subject.tool.id, subject.arguments_hash, call.run_id or "", self.now()
        )
        own = (one for one in found if one.root in {"", call.root})
        return next((one for one in own if codes <= set(one.rule.split("+"))), None)

    async def answered(
        self, subject: Subject, asked: Sequence[Verdict], verdicts: Sequence[Verdict]
    ) -> Question:
        """Return an approval of this call, or raise: denied, or parked."""
        rule = rule_of(asked)
        question = await self.find(subject, rule)
        if question is None or question.state is Answer.PENDING:
            with self.waits.place(subject.call):
                question = question or await self._asked(subject, rule, asked, verdicts)
                question = await self._wait(question, subject.call, verdicts)
        if question.state is not Answer.APPROVED:
            raise _denied(question)
        return question

    def needs_four_eyes(self, question: Question) -> bool:
        """Whether whoever asked may not answer."""
        return wants_four_eyes(self.terms.four_eyes, question.tool)

    async def _asked(
        self,
        subject: Subject,
        rule: str,
        asked: Sequence[Verdict],
        verdicts: Sequence[Verdict],
    ) -> Question:
        """Ask, in turn: of two that come side by side with the same, the second finds the first."""
        async with self._asking:
            question = await self.find(subject, rule)
            return question or await self._ask(subject, rule, asked, verdicts)

    async def _ask(
        self,
        subject: Subject,
        rule: str,
        asked: Sequence[Verdict],
        verdicts: Sequence[Verdict],
    ) -> Question:
        call, now, most = subject.call, self.now(), self.terms.most
        if await self.store.count_pending(now, call.caller.id) >= most:
            raise GuardTripped(
                f"{call.caller.id} has {most} questions open.",
                rule="too_many_questions",
                way_out="openfang approvals list, and answer some; or raise approvals.max_pending",
            )
        question = Question(
            id=new_id("ask"),
            caller=call.caller.id,
            tool=subject.tool.id,
            arguments_hash=subject.arguments_hash,
            run=call.run_id or "",
            rule=rule,
            reason="; ".join(verdict.reason for verdict in asked),
            arguments=self.redact(subject.arguments),
            state=Answer.PENDING,
            scope=Scope.ONCE,
            asked_at=now,
            expires_at=now + self.terms.timeout_ns,
            root=call.root,
            about=orjson.loads(self.redact(orjson.dumps(_about(subject, verdicts)).decode())),
        )
        statements = (rows.insert(question), rows.expire_by(question.expires_at))
        record = _record(APPROVAL_REQUESTED, question, call_id=call.id)
        await self.append([record], (*statements, *self.outbox(question)), (TIMERS,))
        self.committed()
        return question

    async def _wait(self, question: Question, call: Call, verdicts: Sequence[Verdict]) -> Question:
        """Wait as long as the edge can; holds no slot, and no deadline runs."""
        with _held(call), self.waits.of(question.id) as answered:
            if await self.store.state(question.id) is Answer.PENDING:
                await self._until(answered, question, call)
        known = await self.store.get(question.id) or question
        if known.state is Answer.PENDING and known.expires_at <= self.now():
            known = await self._expired(known) or known
        if known.state is not Answer.PENDING:
            return known
        raise Parked(
            f"{question.tool} waits for a person: {question.reason}",
            question_id=question.id,
            rule=question.rule,
            verdicts=verdicts,
        )

    async def _until(self, answered: anyio.Event, question: Question, call: Call) -> None:
        """Wait for the answer, by whichever way it comes; who can be shown the question is."""
        left = (question.expires_at - self.now()) / _SECOND
        client = self._shown_to(question, call)
        with anyio.move_on_after(left if client else min(left, call.patience)):
            if client is None:
                await answered.wait()
                return
            async with anyio.create_task_group() as group:
                group.start_soon(self._show, client, question, call, group.cancel_scope)
                await answered.wait()
                group.cancel_scope.cancel()

    def _shown_to(self, question: Question, call: Call) -> Client | None:
        """Give the client whose person may see it: one of a task always, for it shows the task."""
        client = call.client
        if client is None or not may_be_shown(client) or self.waits.ended:
            return None
        if not client.has_person:
            return client
        asks = self.terms.ask_clients and not self.needs_four_eyes(question)
        return client if asks else None

    async def _show(
        self, client: Client, question: Question, call: Call, waiting: anyio.CancelScope
    ) -> None:
        """Have the client ask; who does not decide there leaves it to the other ways."""
        person = client.has_person
        by, via = (f"client:{client.key}", Way.CLIENT) if person else (call.root, Way.A2A)
        try:
            approve = await show(client, question)
            if approve is not None:
                await self.answer(question.id, approve=approve, by=by, via=via)
                return
        except OpenFangError as error:
            _log.info("The client of %s did not answer %s: %s", call.id, question.id, error.message)
        await anyio.sleep(max(0.0, call.patience))
        waiting.cancel()

    def end_waits(self) -> None:
        """Park every call that waits, and let none wait from now on: the node is ending."""
        self.waits.end()

    async def spend(self, question: Question, call: Call) -> None:
        """Use an approval up; one for a session or a rule stays."""
        if question.scope is not Scope.ONCE:
            return
        record = _record(APPROVAL_SPENT, question, call_id=call.id)
        try:
            await self.append([record], (rows.spend(question.id),))
        except Conflict:
            raise _denied(replace(question, state=Answer.SPENT)) from None

    async def answer(
        self,
        question_id: str,
        *,
        approve: bool,
        by: str,
        via: Way,
        scope: Scope = Scope.ONCE,
    ) -> Question:
        """Take a person's answer. A rule that was approved may be denied later: that revokes it."""
        question = await self.store.get(question_id)
        if question is None:
            raise NotFound(f"No question {question_id}.", way_out="openfang approvals list")
        _check_open(question, approve=approve, now=self.now())
        if approve and scope is Scope.SESSION and not question.run:
            raise Conflict(
                f"{question.id} belongs to no run, so there is no session to approve it for.",
                way_out="--scope once, or --scope rule",
            )
        answered = replace(
            question,
            state=Answer.APPROVED if approve else Answer.DENIED,
            scope=scope,
            answered_at=self.now(),
            answered_by=by,
            via=via,
            expires_at=self._expiry(question, approve=approve, scope=scope),
        )
        return await self._keep(question, answered)

    async def _keep(self, question: Question, answered: Question) -> Question:
        record = _record(APPROVAL_ANSWERED, answered, call_id=str(answered.about.get("call", "")))
        try:
            told = (Notice(APPROVALS, question.id),)
            await self.append([record], (rows.answer(answered, question.state),), told)
        except Conflict:
            raise _already(question) from None
        self.waits.tell(question.id)
        return answered

    def _expiry(self, question: Question, *, approve: bool, scope: Scope) -> int:
        if approve:
            return _NEVER if scope is Scope.RULE else question.expires_at
        revoked = question.state is Answer.APPROVED
        return self.now() if revoked else question.expires_at

    async def expire(self, now: int) -> int:
        """Deny, on record, what nobody answered in time; returns when to look again."""
        overdue = await self.store.overdue(now, _AT_ONCE)
        for question in overdue:
            await self._expired(question)
        if len(overdue) == _AT_ONCE:
            return now
        following = await self.store.next_expiry()
        return min(now + _LOOK_AGAIN_NS, now + _LOOK_AGAIN_NS if following is None else following)

    async def _expired(self, question: Question) -> Question | None:
        """Deny it, unless somebody was faster."""
        denied = replace(question, state=Answer.DENIED, answered_at=self.now(), via=Way.TIMEOUT)
        try:
            return await self._keep(question, denied)
        except Conflict:
            return None


def _held(call: Call) -> AbstractContextManager[None]:
    return nullcontext() if call.pause is None else call.pause.held()


def _about(subject: Subject, verdicts: Sequence[Verdict]) -> Mapping[str, Any]:
    call, tool = subject.call, subject.tool
    return {
        "call": call.id,
        "edge": call.edge,
        "risk": tool.risk.name,
        "tags": sorted(tool.tags),
        "labels": subject.labels.names,
        "verdicts": [
            {"gate": one.gate, "verdict": one.verdict, "code": one.code, "reason": one.reason}
            for one in verdicts
        ],
        "chain": {
            "trace": call.chain.starry_id or call.chain.trace_id,
            "depth": call.chain.depth,
            "ancestors": call.chain.ancestors,
        },
    }


def rule_of(asked: Sequence[Verdict]) -> str:
    """Name what a person is asked to allow: every code, once, in order."""
    return "+".join(sorted({verdict.code for verdict in asked}))


def _check_open(question: Question, *, approve: bool, now: int) -> None:
    revoking = question.state is Answer.APPROVED and not approve
    if question.state is not Answer.PENDING and not revoking:
        raise _already(question)
    if question.expires_at <= now:
        raise Conflict(
            f"Question {question.id} has expired, which denies it.",
            way_out="make the call again: it asks anew",
        )


def _already(question: Question) -> Conflict:
    return Conflict(
        f"Question {question.id} was answered already.", way_out="openfang approvals list --all"
    )


def _denied(question: Question) -> PolicyViolation:
    by = question.answered_by or "nobody in time"
    return PolicyViolation(
        f"Policy violation: approval {question.id} is {question.state.value} ({by})",
        rule=f"approval_{question.state.value}",
        way_out="do it another way, or ask the person who denied it",
    )


def _record(event: str, question: Question, *, call_id: str = "") -> Record:
    return Record(
        event=event,
        call_id=call_id,
        payload={
            "question": question.id,
            "state": question.state.value,
            "scope": question.scope.value,
            "rule": question.rule,
            "reason": question.reason,
            "arguments_hash": question.arguments_hash,
            "answered_by": question.answered_by,
            "via": question.via.value if question.via else None,
        },
        context={"caller": question.caller, "tool": question.tool, "root": question.root},
    )
