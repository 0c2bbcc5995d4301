"""Tokens that stand in for a key once: each answers one question, in one way, until it is over.

None is kept: a token is a MAC over what it answers, under a key that changes with the webhook, so
another address or another secret makes all that were sent before worthless. It is spent by the
answer, for a question is answered once.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final

import orjson

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.keys import Question

_PREFIX: Final = "ofa_"
_VERBS: Final = {"approve": True, "deny": False}


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """Makes tokens and reads them."""

    key: bytes

    def make(self, question: Question) -> dict[str, str]:
        """Write the two tokens of a question."""
        return {verb: self._token(question, verb) for verb in _VERBS}

    def read(self, question: Question, token: str) -> bool | None:
        """Say which answer a token gives to a question: yes, no, or none at all."""
        made, given = self.make(question), token.encode()
        # Both are looked at, whatever the first says: time tells nothing.
        found = [verb for verb in _VERBS if hmac.compare_digest(made[verb].encode(), given)]
        return _VERBS[found[0]] if found else None

    def _token(self, question: Question, verb: str) -> str:
        bound = [question.id, verb, question.arguments_hash, question.caller, question.expires_at]
        mac = hmac.digest(self.key, orjson.dumps(bound), "sha256")
        return _PREFIX + urlsafe_b64encode(mac).decode().rstrip("=")
