"""Questions: durable, bound to caller, tool and arguments, answered by a person, spent once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from openfang.core.errors import Conflict, NotFound, Parked, PolicyViolation
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """Asks, and finds what was answered. `now` is the wall clock in nanoseconds."""

    store: ApprovalStore
    append: Append
    redact: Callable[[str], str]
    now: Callable[[], int]
    timeout_ns: int

    def find(self, subject: Subject, rule: str) -> Question | None:
        """Find an answer, or an open question, that covers this call. Changes nothing."""
        for question in self.store.of_caller(subject.call.caller.id, subject.tool.id):
            if question.expires_at > self.now() and _covers(question, subject, rule):
                return question
        return None

    async def clear(
        self, subject: Subject, asked: Sequence[Verdict], verdicts: Sequence[Verdict]
    ) -> Question:
        """Return the approval that this call used up, or raise: denied, or parked."""
        rule = rule_of(asked)
        question = self.find(subject, rule) or await self._ask(subject, rule, asked)
        if question.state is Answer.PENDING:
            question = await self._wait(question, subject.call.patience, verdicts)
        if question.state is not Answer.APPROVED:
            raise _denied(question)
        await self._spend(question, subject.call)
        return question

    async def _ask(self, subject: Subject, rule: str, asked: Sequence[Verdict]) -> Question:
        now = self.now()
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

    async def _spend(self, question: Question, call: Call) -> None:
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
        answered = replace(
            question,
            state=Answer.APPROVED if approve else Answer.DENIED,
            scope=scope,
            answered_at=self.now(),
            answered_by=by.id,
            expires_at=_NEVER if approve and scope is Scope.RULE else question.expires_at,
        )
        record = _record(APPROVAL_ANSWERED, answered)
        await self.append([record], (rows.answer(answered),))
        return answered


_NEVER = 2**62


def rule_of(asked: Sequence[Verdict]) -> str:
    """Name what a person is asked to allow: every code, once, in order."""
    return "+".join(sorted({verdict.code for verdict in asked}))


def _covers(question: Question, subject: Subject, rule: str) -> bool:
    """Whether the question is about this call: its arguments, its run, or any call of the tool."""
    if not set(rule.split("+")) <= set(question.rule.split("+")):
        return False
    match question.scope:
        case Scope.ONCE:
            return question.arguments_hash == subject.arguments_hash
        case Scope.SESSION:
            return bool(question.run) and question.run == subject.call.run_id
        case Scope.RULE:
            return True


def _check_open(question: Question, *, approve: bool, now: int) -> None:
    revoking = question.state is Answer.APPROVED and not approve
    if question.state is not Answer.PENDING and not revoking:
        raise Conflict(
            f"Question {question.id} is {question.state.value} already.",
            way_out="openfang approvals list --all",
        )
    if question.expires_at <= now:
        raise Conflict(
            f"Question {question.id} has expired, which denies it.",
            way_out="make the call again: it asks anew",
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
