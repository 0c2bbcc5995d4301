"""Questions: durable, bound to caller, tool and arguments, answered by a person, spent once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from openfang.core.errors import Conflict, GuardTripped, NotFound, Parked, PolicyViolation
from openfang.core.events import APPROVAL_ANSWERED, APPROVAL_REQUESTED, APPROVAL_SPENT, Record
from openfang.core.ids import new_id
from openfang.core.keys import Answer, Question, Scope
from openfang.storage import approvals as rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.core.calls import Call, Caller
    from openfang.core.decisions import Verdict
    from openfang.core.tools import Tool
    from openfang.storage.approvals import ApprovalStore

_POLL_SECONDS = 0.1
_MOST_PENDING = 100


class Append(Protocol):
    """How a change and its record become durable together."""

    async def __call__(
        self, records: Sequence[Record], statements: tuple[tuple[str, Sequence[Any]], ...] = ()
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


@dataclass(slots=True, kw_only=True)
class Approvals:
    """Asks, and finds what was answered. `now` is the wall clock in nanoseconds."""

    store: ApprovalStore
    append: Append
    redact: Callable[[str], str]
    now: Callable[[], int]
    timeout_ns: int

    def find(self, subject: Subject, rule: str) -> Question | None:
        """Find an answer, or an open question, that covers this call. Changes nothing."""
        call = subject.call
        found = self.store.covering(
            call.caller.id, subject.tool.id, subject.arguments_hash, call.run_id or "", self.now()
        )
        codes = set(rule.split("+"))
        return next((one for one in found if codes <= set(one.rule.split("+"))), None)

    async def answered(
        self, subject: Subject, asked: Sequence[Verdict], verdicts: Sequence[Verdict]
    ) -> Question:
        """Return an approval of this call, or raise: denied, or parked."""
        rule = rule_of(asked)
        question = self.find(subject, rule) or await self._ask(subject, rule, asked)
        if question.state is Answer.PENDING:
            question = await self._wait(question, subject.call.patience, verdicts)
        if question.state is not Answer.APPROVED:
            raise _denied(question)
        return question

    async def _ask(self, subject: Subject, rule: str, asked: Sequence[Verdict]) -> Question:
        now = self.now()
        if self.store.pending_of(subject.call.caller.id, now) >= _MOST_PENDING:
            raise GuardTripped(
                f"{subject.call.caller.id} has {_MOST_PENDING} questions open.",
                rule="too_many_questions",
                way_out="openfang approvals list, and answer some",
            )
        question = Question(
            id=new_id("ask"),
            caller=subject.call.caller.id,
            tool=subject.tool.id,
            arguments_hash=subject.arguments_hash,
            run=subject.call.run_id or "",
            rule=rule,
            reason="; ".join(verdict.reason for verdict in asked),
            arguments=self.redact(subject.arguments),
            state=Answer.PENDING,
            scope=Scope.ONCE,
            asked_at=now,
            expires_at=now + self.timeout_ns,
        )
        await self.append([_record(APPROVAL_REQUESTED, question)], (rows.insert(question),))
        return question

    async def _wait(
        self, question: Question, patience: float, verdicts: Sequence[Verdict]
    ) -> Question:
        """Wait as long as the edge can; holds no slot, and no deadline of the tool runs."""
        with anyio.move_on_after(patience):
            while question.state is Answer.PENDING and question.expires_at > self.now():
                await anyio.sleep(_POLL_SECONDS)
                question = self.store.get(question.id) or question
        if question.state is not Answer.PENDING:
            return question
        raise Parked(
            f"{question.tool} waits for a person: {question.reason}",
            question_id=question.id,
            rule=question.rule,
            verdicts=verdicts,
        )

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
        self, question_id: str, *, approve: bool, by: Caller, scope: Scope = Scope.ONCE
    ) -> Question:
        """Take a person's answer. A rule that was approved may be denied later: that revokes it."""
        question = self.store.get(question_id)
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
            answered_by=by.id,
            expires_at=self._expiry(question, approve=approve, scope=scope),
        )
        record = _record(APPROVAL_ANSWERED, answered)
        try:
            await self.append([record], (rows.answer(answered, question.state),))
        except Conflict:
            raise _already(question) from None
        return answered

    def _expiry(self, question: Question, *, approve: bool, scope: Scope) -> int:
        if approve:
            return _NEVER if scope is Scope.RULE else question.expires_at
        revoked = question.state is Answer.APPROVED
        return self.now() if revoked else question.expires_at


_NEVER = 2**62


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
        },
        context={"caller": question.caller, "tool": question.tool},
    )
