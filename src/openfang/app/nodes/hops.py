"""How calls leave for other nodes and arrive from them: what is told, signed and believed (C8)."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from openfang.app.nodes.book import Book, book_of, fingerprint
from openfang.app.nodes.judging import Judge, answer_of
from openfang.app.nodes.owed import Owed
from openfang.core.ids import random_hex
from openfang.core.labels import Labels
from openfang.core.purse import Purse
from openfang.core.trace import Chain, at_home, both_known
from openfang.core.values import dataclass, value
from openfang.guard.away import Away, Departed
from openfang.guard.nonces import Nonces
from openfang.protocols.hops.token import LIFE_MS, TELLS, BadToken, sealed
from openfang.protocols.hops.words import ANSWER, ASKS, CHAIN, trace_words, words_of
from openfang.sources.hops import PlainHop, labelled, told_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from openfang.app.nodes.book import KnownNode
    from openfang.config.models import Config
    from openfang.core.calls import Admitted, Caller
    from openfang.core.ports import Clock
    from openfang.core.purse import Share
    from openfang.core.results import Result
    from openfang.core.trace import Claim, Judged, Told
    from openfang.guard.recursion import Chains
    from openfang.sources.hops import Hop

MILLISECOND: Final = 1_000_000
# Who is called must have ended before who waits for them gives up.
_KEPT_BACK: Final = 0.1
_MOST_KEPT: Final = 0.05


@value
class Arrived:
    """A chain as it is gone on with here. `peer` is who came with it, if that is a peer."""

    chain: Chain
    labels: Labels = Labels.NONE
    peer: str = ""


@dataclass(slots=True, kw_only=True)
class NodeHops:
    """The hops of one node. Where there are no nodes, nothing is signed and nothing is checked.

    `node` is the name to those elsewhere: one for all nodes of a database, which have one key.
    """

    node: str
    clock: Clock
    chains: Chains
    signing: Callable[[], Ed25519PrivateKey]
    book: Book = field(default_factory=Book)
    away: Away = field(default_factory=Away)
    nonces: Nonces = field(default_factory=Nonces)
    owed: Owed = field(init=False)
    seconds: float = 600.0
    _key: Ed25519PrivateKey | None = None
    _id: str = ""
    _began: int = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now
        self.owed = Owed(self.vouch)

    def configure(self, config: Config) -> None:
        """Know those that a configuration names from now on; calls under way go on."""
        self.book, self.seconds = book_of(config), config.guard.deadline_secs

    @property
    def now(self) -> int:
        """The time of day, in milliseconds."""
        return self.clock.time_ns() // MILLISECOND

    @property
    def key(self) -> Ed25519PrivateKey:
        """The key that this node signs with."""
        if self._key is None:
            self._key = self.signing()
        return self._key

    @property
    def id(self) -> str:
        """Who this node is to others: the fingerprint of its key."""
        if not self._id:
            self._id = fingerprint(self.key.public_key().public_bytes_raw())
        return self._id

    def opens(self, url: str) -> bool:
        """Whether an address is that of a node which may be at a private one."""
        node = self.book.at(url)
        return node is not None and node.allow_private

    def depart(self, admitted: Admitted, url: str = "") -> Hop:
        """Send a call on its way, and keep in mind that it is there."""
        call, tool, book = admitted.call, admitted.tool, self.book
        chain = call.chain.onward(tool.id)
        place = tool.kind, tool.source
        node = book.reached.get(place) or (book.at(url) if url and book.nodes else None)
        who = book.comes.get(place) or (node.who if node else "")
        departed = Departed(chain=chain, root=call.root, labels=admitted.labels, who=who)
        self.away.leave(departed)
        told = self._told(chain, admitted.labels)
        if node is None:
            calls, usd = self.chains.left(call.chain)
            return _Departing(chain, replace(told, calls=calls, usd=usd), self, departed)
        return _Signed(self, node, call.chain, told, departed)

    def _told(self, chain: Chain, labels: Labels) -> Told:
        told = told_of(chain, self.node, labels)
        if chain.deadline is None:
            return told
        left = chain.deadline - self.clock.monotonic()
        return replace(told, seconds=max(0.0, left - min(_KEPT_BACK, left * _MOST_KEPT)))

    def arrive(self, chain: Chain, caller: Caller) -> Arrived:
        """Go on with a chain as far as it is believed, and never with less than we know of it."""
        judged = self._judged(chain, caller)
        signed = next((one for one in judged if one.node), None)
        live = self._live(chain, caller, trusted=signed is not None)
        depth, ancestors = _path(chain, judged, live, self.node)
        labels = _labels(judged, live)
        if signed is None and depth > 1:
            labels |= Labels.UNTRUSTED_AGENT
        ours = live.chain if live and not chain.shared else chain
        gone_on = Chain(
            trace_id=ours.trace_id,
            span_id=chain.span_id,
            depth=depth,
            ancestors=ancestors,
            deadline=self._deadline(judged, live),
            starry_id=ours.starry_id,
            shared=chain.shared or live is not None,
            counted=signed.asks if signed else live.chain.key if live else "",
            parent=chain.parent,
            purse=_purse(judged, None if signed else live),
        )
        return Arrived(chain=gone_on, labels=labels, peer=self._peer(signed, caller, depth))

    def _judged(self, chain: Chain, caller: Caller) -> list[Judged]:
        judged: list[Judged] = []
        for claim in chain.claims:
            if claim.judged is None:
                claim.judged = Judge(self, caller).judged(claim.told)
            judged.append(claim.judged)
        return judged

    def _deadline(self, judged: list[Judged], live: Departed | None) -> float:
        """The first of all ends that anybody knows of, and of the usual one."""
        ends = self.clock.monotonic() + self.seconds
        for one in judged:
            if one.ends is not None and one.ends < ends:
                ends = one.ends
        known = live.chain.deadline if live else None
        return ends if known is None else min(ends, known)

    def _live(self, chain: Chain, caller: Caller, *, trusted: bool) -> Departed | None:
        """Find the call of ours that somebody works on who does not say so.

        A node that signs what it says is believed: what it does besides is its own affair.
        """
        found = self.away.of_chain(chain, caller.id) if chain.shared else None
        at_peer = None if trusted else self.away.of_peer(caller.id)
        if found is None or at_peer is None:
            return found or at_peer
        return max(found, at_peer, key=lambda one: one.chain.depth)

    def _peer(self, signed: Judged | None, caller: Caller, depth: int) -> str:
        if signed is not None:
            return signed.node
        return self.book.peers.get(caller.id) or (caller.id if depth > 1 else "")

    def vouch(self, claims: Sequence[Claim], labels: Labels) -> str:
        """Sign what is said of a result, for the node that asked; for nobody else.

        Of a talk with several messages the first brought the budget, the last is answered.
        """
        signed = [one.judged for one in claims if one.judged and one.judged.node]
        node = self._named(signed[-1].node) if signed else None
        if node is None:
            return ""
        purse = signed[0].purse
        used = {"calls": purse.used_calls, "usd": purse.used_usd} if purse else {}
        words = {"re": signed[-1].asks, "labels": labels.names, "used": used}
        return self.sealed(TELLS, node, words)

    def _named(self, name: str) -> KnownNode | None:
        return next((one for one in self.book.nodes if one.name == name), None)

    def sealed(self, kind: str, node: KnownNode, words: Mapping[str, Any]) -> str:
        """Sign words for a node, to be believed for a minute."""
        now = self.now
        claims = {**words, "iss": self.id, "aud": node.id, "iat": now, "exp": now + LIFE_MS}
        return sealed(kind, claims, self.key.sign)

    @property
    def began(self) -> int:
        """When this process began: what was signed before may have been used before."""
        return self._began


@dataclass(frozen=True, slots=True)
class _Departing(PlainHop):
    """A hop to somebody who is no node."""

    hops: NodeHops
    departed: Departed

    def end(self) -> None:
        self.hops.away.back(self.departed)


@dataclass(slots=True)
class _Signed:
    """A hop to a node of ours: half of what the chain has left goes along, to be given back."""

    hops: NodeHops
    node: KnownNode
    payer: Chain
    told: Told
    departed: Departed
    _share: Share | None = None
    _asks: str = ""

    def words(self) -> dict[str, Any]:
        chain, share = self.departed.chain, self._lent()
        self._asks = random_hex(16)
        words = {
            **words_of(replace(self.told, calls=share.calls, usd=share.usd)),
            "trace": chain.trace_id,
            "starry": chain.starry_id,
            "nonce": self._asks,
        }
        return {**trace_words(chain), CHAIN: self.hops.sealed(ASKS, self.node, words)}

    def _lent(self) -> Share:
        if self._share is None:
            self._share = self.hops.chains.lend(self.payer)
        return self._share

    def headers(self) -> dict[str, str]:
        """Write the trace alone: what is signed is good for one message."""
        return trace_words(self.departed.chain)

    def back(self, result: Result, beside: Mapping[str, Any]) -> Result:
        """Believe what the node signed of its answer, for this very question."""
        try:
            word = answer_of(self.hops, self.node, beside.get(ANSWER), self._asks)
        except BadToken:
            return labelled(result, beside)
        if self._share is not None:
            self.hops.chains.settle(self.payer, self._share, word.calls or 0, word.usd or 0.0)
            self._share = None
        return replace(result, labels=word.labels, vouched=True)

    def end(self) -> None:
        self.hops.away.back(self.departed)


def _path(
    chain: Chain, judged: list[Judged], live: Departed | None, node: str
) -> tuple[int, tuple[str, ...]]:
    """Say how deep it is and who waits: all that anybody knows of."""
    ancestors, depth = at_home(chain.ancestors, node), chain.depth
    for one in judged:
        if one.told.ancestors != chain.ancestors:
            ancestors = both_known(ancestors, at_home(one.told.ancestors, node))
        depth = max(depth, one.told.depth)
    if live is not None:
        ancestors = both_known(ancestors, live.chain.ancestors)
        depth = max(depth, live.chain.depth)
    return max(depth, len(ancestors) + 1), ancestors


def _labels(judged: list[Judged], live: Departed | None) -> Labels:
    labels = live.labels if live else Labels.NONE
    for one in judged:
        labels |= one.told.labels
    return labels


def _purse(judged: list[Judged], live: Departed | None) -> Purse | None:
    """Hold the call to what is left by each who said something of it, and by ourselves."""
    found = [one.purse for one in judged if one.purse is not None]
    if live is not None and live.chain.purse is not None:
        found.append(live.chain.purse)
    if len(found) > 1:
        return Purse(above=tuple(found))
    return found[0] if found else None
