"""The answer of somebody who has a key: whether they may give it, on record if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.app.auth.identify import note_refusal, require
from openfang.core.calls import Role
from openfang.core.errors import PolicyViolation
from openfang.core.keys import Scope
from openfang.core.values import dataclass
from openfang.policy.answerers import check_answerer

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.keys import Question, Way


@dataclass(frozen=True, slots=True)
class Answering:
    """Answers as one caller."""

    parts: Parts
    caller: Caller

    async def answer(
        self, question_id: str, *, approve: bool, via: Way, scope: Scope = Scope.ONCE
    ) -> Question:
        """Answer a question, if this caller may."""
        await self.check(question_id, approve=approve)
        return await self.parts.approvals.answer(
            question_id, approve=approve, by=self.caller.id, via=via, scope=scope
        )

    async def check(self, question_id: str, *, approve: bool) -> None:
        """Refuse who is no approver, and who asked for it. Everybody may deny what they asked."""
        await require(self.parts, self.caller, Role.APPROVER)
        approvals = self.parts.approvals
        question = await approvals.store.get(question_id)
        if question is None or not approve:
            return
        try:
            check_answerer(question, self.caller, four_eyes=approvals.needs_four_eyes(question))
        except PolicyViolation as refusal:
            await note_refusal(self.parts, self.caller.id, refusal.rule, refusal.message)
            raise
