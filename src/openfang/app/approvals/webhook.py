"""Questions sent to the operator's webhook, signed, and the answers that come back with a token.

What is to be sent is a row of the unit that the question was asked in; what was sent, or given up,
is on record with the host alone.
"""

from __future__ import annotations

import hmac
import logging
import random
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import orjson

from openfang.app.a2a.targets import Targets
from openfang.app.approvals.tokens import AnswerTokens
from openfang.app.posting import Letter, Post
from openfang.app.timers import Again, wait_before
from openfang.core.errors import PolicyViolation, Unauthenticated
from openfang.core.events import APPROVAL_DELIVERED, APPROVAL_UNDELIVERED, Record
from openfang.core.keys import Answer, Way
from openfang.core.values import dataclass
from openfang.core.wire import question_body
from openfang.host.names import system_resolve
from openfang.policy.answerers import check_four_eyes
from openfang.storage import timers
from openfang.storage.timers import Timer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.app.parts import Parts
    from openfang.config.node import Webhook
    from openfang.core.keys import Question
    from openfang.host.names import Resolve
    from openfang.storage.approvals import Statement

KIND: Final = "approval"
_log = logging.getLogger("openfang.approvals")
_SECOND: Final = 1_000_000_000
_ENCODED: Final = "whsec_"
_CHANCE: Final = random.Random()  # noqa: S311 - it spreads load, it keeps no secret


@dataclass(frozen=True, slots=True)
class Hook:
    """The webhook of a node, if its configuration names one now."""

    parts: Parts
    resolve: Resolve = system_resolve

    def outbox(self, question: Question) -> Sequence[Statement]:
        """Have a question sent, in the unit that it is asked in."""
        hook = self._configured
        if hook is None:
            return ()
        timer = Timer(
            id=f"{KIND}/{question.id}",
            kind=KIND,
            subject=question.id,
            due=question.asked_at,
            party=question.caller,
            place=_host(hook),
        )
        return (timers.add(timer),)

    @property
    def _configured(self) -> Webhook | None:
        return self.parts.config.approvals.webhook

    async def deliver(self, timer: Timer) -> Again | None:
        """Send one; return when it is to be tried again, if it is."""
        parts, hook = self.parts, self._configured
        question = await parts.approvals.store.get(timer.subject)
        if hook is None or question is None or question.state is not Answer.PENDING:
            return None  # there is nobody to be told, or nothing
        if question.expires_at <= parts.clock.time_ns():
            return await self._settle(timer, question, hook, "nobody took it in time", sent=False)
        posted = await self._post(hook).send(self._letter(hook, question))
        if posted.taken:
            return await self._settle(timer, question, hook, posted.reason, sent=True)
        if posted.hopeless(timer.tries):
            return await self._settle(timer, question, hook, posted.reason, sent=False)
        wait = max(wait_before(timer.tries, _CHANCE), posted.wait)
        what = (question.id, _host(hook), posted.reason, wait)
        _log.warning("%s was not taken by %s: %s; it is sent again in %.0f s", *what)
        return Again(wait, timer.tries + 1)

    def _post(self, hook: Webhook) -> Post:
        targets = Targets(allow_private=lambda: hook.allow_private, resolve=self.resolve)
        return Post(targets, self.parts.clock)

    async def _settle(
        self, timer: Timer, question: Question, hook: Webhook, reason: str, *, sent: bool
    ) -> None:
        """Put it on record, and let it be over, in one unit."""
        if not sent:
            _log.warning("%s is not sent to %s: %s", question.id, _host(hook), reason)
        record = Record(
            event=APPROVAL_DELIVERED if sent else APPROVAL_UNDELIVERED,
            level="info" if sent else "warning",
            payload={
                "question": question.id,
                "host": _host(hook),
                "tries": timer.tries + 1,
                "reason": reason,
            },
            context={"caller": question.caller, "tool": question.tool},
        )
        await self.parts.broker.append([record], (timers.done(timer),))

    def _letter(self, hook: Webhook, question: Question) -> Letter:
        now = self.parts.clock.time_ns()
        answer = f"{self.parts.reached_at}/api/approvals/{question.id}/answer"
        body = orjson.dumps(
            {
                "type": "approval.requested",
                "question": question_body(question, now),
                "answer": {"url": answer, **self._tokens(hook).make(question)},
            }
        )
        return Letter(hook.url, signed(_secret(hook), question.id, now // _SECOND, body), body)

    def _tokens(self, hook: Webhook) -> AnswerTokens:
        ours = self.parts.master.derive("approval-answers")
        bound = orjson.dumps([hook.url, hook.secret.get_secret_value()])
        return AnswerTokens(hmac.digest(ours, bound, "sha256"))

    async def answer(self, question_id: str, token: str, by: str) -> Question:
        """Take the answer that a token gives; who gave it is what the receiver says.

        A token that is none, one for another question, and a question that is none look the same.
        """
        approvals, hook = self.parts.approvals, self._configured
        question = await approvals.store.get(question_id)
        approve = None
        if hook is not None and question is not None:
            approve = self._tokens(hook).read(question, token)
        if hook is None or question is None or approve is None:
            raise _no_token()
        who = f"webhook:{by or _host(hook)}"
        if approve and approvals.needs_four_eyes(question):
            check_four_eyes(question, f"key:{by.removeprefix('key:')}")
        if question.state is Answer.APPROVED and not approve:
            raise _spent(question)  # what was approved is revoked by who has a key
        return await approvals.answer(question_id, approve=approve, by=who, via=Way.WEBHOOK)


def signed(secret: bytes, message: str, seconds: int, body: bytes) -> dict[str, str]:
    """Write the headers by which a receiver knows that a body is ours, and when it was sent."""
    mac = hmac.digest(secret, b"%b.%d.%b" % (message.encode(), seconds, body), "sha256")
    return {
        "Content-Type": "application/json",
        "Webhook-Id": message,
        "Webhook-Timestamp": str(seconds),
        "Webhook-Signature": f"v1,{b64encode(mac).decode()}",
    }


def _secret(hook: Webhook) -> bytes:
    text = hook.secret.get_secret_value()
    if text.startswith(_ENCODED):
        try:
            return b64decode(text.removeprefix(_ENCODED), validate=True)
        except NoBase64:
            pass
    return text.encode()


def _host(hook: Webhook) -> str:
    return urlsplit(hook.url).hostname or ""


def _no_token() -> Unauthenticated:
    return Unauthenticated(
        "This token answers no question that is open.",
        rule="answer_token",
        way_out="use a token of the question, once, while it is open; or a key: "
        "POST /api/approvals/{id}",
    )


def _spent(question: Question) -> PolicyViolation:
    return PolicyViolation(
        f"Question {question.id} was answered already.",
        rule="answer_token",
        way_out="revoke it with a key: openfang approvals deny",
    )
