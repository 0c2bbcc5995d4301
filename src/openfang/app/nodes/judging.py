"""Whether what is said of a chain is believed: a signature of a node of ours, for us, lately, once.

What is not believed still counts, as far as it makes a chain tighter.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.purse import Purse
from openfang.core.trace import Judged
from openfang.core.values import dataclass
from openfang.protocols.hops.token import (
    SKEW_MS,
    TELLS,
    BadToken,
    check_signature,
    check_times,
    claims_in,
)
from openfang.protocols.hops.words import ASKS, told_in

if TYPE_CHECKING:
    from openfang.app.nodes.book import KnownNode
    from openfang.app.nodes.hops import NodeHops
    from openfang.core.calls import Caller
    from openfang.core.trace import Told

_log = logging.getLogger("openfang.nodes")
_LONGEST_NONCE: Final = 64


@dataclass(slots=True)
class Judge:
    """Judges what one caller says."""

    hops: NodeHops
    caller: Caller

    def judged(self, told: Told) -> Judged:
        """Judge one claim. A signature is used up by that."""
        if not told.token:
            return self._weighed(told)
        try:
            claims = claims_in(ASKS, told.token)
        except BadToken as wrong:
            return self._disbelieved(told, wrong)
        said = told_in(claims)
        try:
            node = self._signer(told.token, claims)
        except BadToken as wrong:
            return self._disbelieved(said, wrong)
        return replace(self._weighed(said), node=node.name, asks=str(claims["nonce"]))

    def _disbelieved(self, told: Told, why: BadToken) -> Judged:
        _log.warning("A signed chain of %s does not hold: %s", self.caller.id, why)
        return self._weighed(replace(told, token="", depth=max(told.depth, 2)))

    def _weighed(self, told: Told) -> Judged:
        bounded = told.calls is not None or told.usd is not None
        return Judged(
            told=told,
            purse=Purse(told.calls, told.usd) if bounded else None,
            ends=None if told.seconds is None else self.hops.clock.monotonic() + told.seconds,
        )

    def _signer(self, token: str, claims: dict[str, Any]) -> KnownNode:
        hops, nonce = self.hops, claims.get("nonce")
        node = hops.book.by_id.get(str(claims.get("iss")))
        if node is None:
            raise BadToken("no node that is configured here signed it")
        check_signature(ASKS, token, node.public_key())
        _check_audience(hops, claims)
        check_times(claims, hops.now, since_ms=hops.began)
        if node.who and node.who != self.caller.id:
            raise BadToken(f"{node.name} comes in as {node.who}")
        if not isinstance(nonce, str) or not 0 < len(nonce) <= _LONGEST_NONCE:
            raise BadToken("it has no number")
        if not hops.nonces.use(f"{node.id}/{nonce}", claims["exp"] + SKEW_MS, hops.now):
            raise BadToken("it was used before")
        return node


def answer_of(hops: NodeHops, node: KnownNode, token: object, asks: str) -> Told:
    """Read what a node signed of its answer to one question of ours, or raise."""
    if not isinstance(token, str):
        raise BadToken("there is none")
    claims = claims_in(TELLS, token)
    check_signature(TELLS, token, node.public_key())
    _check_audience(hops, claims)
    check_times(claims, hops.now)
    if claims.get("iss") != node.id or claims.get("re") != asks or not asks:
        raise BadToken("it answers another question")
    used = claims.get("used")
    told = told_in(cast("dict[str, Any]", used) if isinstance(used, dict) else {})
    return replace(told, labels=told_in(claims).labels)


def _check_audience(hops: NodeHops, claims: dict[str, Any]) -> None:
    if claims.get("aud") != hops.id:
        raise BadToken("it is meant for another node")
