"""Questions: durable, bound to caller, tool and arguments, answered by a person, spent once."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from openfang.core.calls import Role
from openfang.core.errors import Conflict, GuardTripped, NotFound, Parked, PolicyViolation
from openfang.core.events import APPROVAL_ANSWERED, APPROVAL_REQUESTED, APPROVAL_SPENT, Record
from openfang.core.ids import new_id
from openfang.core.keys import Answer, Question, Scope
from openfang.storage import approvals as rows

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from openfang.core.calls import Call, Caller
    from openfang.core.decisions import Verdict
    from openfang.core.tools import Tool
    from openfang.storage.approvals import ApprovalStore

# Only what another process answered is found by looking.
_LOOK_SECONDS = 1.0
_MOST_PENDING = 100
_MOST_OF_ONE = 20


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
    """Asks, and finds what was answered. `now` is the wall clock in nanoseconds.

    `most_waiting` is how many calls may wait for an answer at once, of all callers together.
    """

    store: ApprovalStore
    append: Append
    redact: Callable[[str], str]
    now: Callable[[], int]
    timeout_ns: int
    most_waiting: int = 250
    _waiting: Counter[str] = field(init=False, default_factory=Counter[str])
    _answers: dict[str, anyio.Event] = field(init=False, default_factory=dict[str, anyio.Event])
    _ended: bool = field(init=False, default=False)

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
        question = self.find(subject, rule)
        if question is None or question.state is Answer.PENDING:
            with self._place(subject.call):
                question = question or await self._ask(subject, rule, asked)
                question = await self._wait(question, subject.call.patience, verdicts)
        if question.state is not Answer.APPROVED:
            raise _denied(question)
        return question

    @property
    def waiting(self) -> int:
        """How many calls wait for an answer now."""
        return self._waiting.total()

    @contextmanager
    def _place(self, call: Call) -> Generator[None]:
        """Count a call that would wait; who has too many waiting is refused before it asks."""
        caller = call.caller
        if call.patience <= 0 or self._ended:
            yield
            return
        full = self.waiting >= self.most_waiting and caller.role is not Role.ADMIN
        if full or self._waiting[caller.id] >= _MOST_OF_ONE:
            raise _too_many(caller.id, self._waiting[caller.id])
        self._waiting[caller.id] += 1
        try:
            yield
        finally:
            self._waiting[caller.id] -= 1
            self._waiting += Counter()  # whoever has none waiting is forgotten

    async def _ask(self, subject: Subject, rule: str, asked: Sequence[Verdict]) -> Question:
        now = self.now()
        if self.store.count_pending(now, subject.call.caller.id) >= _MOST_PENDING:
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
            while not self._ended and question.expires_at > self.now():
                if self.store.state(question.id) is not Answer.PENDING:
                    return self.store.get(question.id) or question
                await self._told(question.id)
        raise Parked(
            f"{question.tool} waits for a person: {question.reason}",
            question_id=question.id,
            rule=question.rule,
            verdicts=verdicts,
        )

    async def _told(self, question_id: str) -> None:
        """Wait until somebody here answers, or until it is time to look what others did."""
        answer = self._answers.setdefault(question_id, anyio.Event())
        try:
            with anyio.move_on_after(_LOOK_SECONDS):
                await answer.wait()
        finally:
            if not answer.statistics().tasks_waiting:
                self._answers.pop(question_id, None)

    def end_waits(self) -> None:
        """Park every call that waits, and let none wait from now on: the node is ending."""
        self._ended = True
        for answer in self._answers.values():
            answer.set()

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
        if answer := self._answers.get(question.id):
            answer.set()
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


def _too_many(caller: str, waiting: int) -> GuardTripped:
    return GuardTripped(
        f"{caller} has {waiting} calls that wait for a person; no more may wait now.",
        rule="too_many_waiting",
        way_out="call without waiting (Prefer: wait), and again when the question is answered",
    )


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
