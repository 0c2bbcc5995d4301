"""One agent elsewhere: asked for its card now and then, and offered as it said it was."""

from __future__ import annotations

import logging
import random
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from openfang.core.errors import OpenFangError
from openfang.core.ids import Kind, tool_id
from openfang.core.values import dataclass
from openfang.host.chatter import legible
from openfang.safety.environment import expand
from openfang.safety.urls import without_user
from openfang.sources.a2a.card import read_card
from openfang.sources.a2a.discover import discover
from openfang.sources.a2a.wire import Reached, Wire
from openfang.sources.mcp.health import in_short
from openfang.storage.peers import KeptPeer, keep
from openfang.storage.units import PEERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.app.parts import Parts
    from openfang.config.peers import ExternalAgent
    from openfang.registry.rules import Rules
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.source import A2aSource
    from openfang.sources.a2a.wire import Asks

_log = logging.getLogger("openfang.a2a")
_DOUBLED: Final = 10
_CHANCE = random.Random()  # noqa: S311 - it spreads load, it keeps no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long to wait, in seconds: after a failure, doubling; and before a card is read again."""

    first: float = 1.0
    longest: float = 300.0
    again: float = 600.0

    def before(self, failures: int) -> float:
        """Wait a while that is not everybody's after so many failures in a row."""
        if not failures:
            return self.again
        most = min(self.longest, self.first * 2.0 ** min(failures - 1, _DOUBLED))
        return _CHANCE.uniform(most / 2, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerState:
    """How a peer is: `discovered`, `held` (its card changed), `unreachable`, or `starting`."""

    name: str
    url: str
    state: str
    card: Mapping[str, Any] | None = None
    error: str = ""


@dataclass(slots=True, kw_only=True)
class Peer:
    """Keeps one peer known. `run` asks; everybody else only reads."""

    entry: ExternalAgent
    source: A2aSource
    parts: Parts
    http: Asks
    rules: Rules
    pace: Pace
    variables: Callable[[], Mapping[str, str]]
    kept: KeptPeer | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    settled: anyio.Event = field(default_factory=anyio.Event)
    error: str = ""
    _failures: int = 0
    _stored: str = ""
    _reached: Reached | None = None
    _nudge: anyio.Event = field(default_factory=anyio.Event)
    _next: anyio.Event = field(init=False)

    def __post_init__(self) -> None:
        self._next = self.settled

    async def run(self) -> None:
        """Ask for the card until the peer is let go."""
        with self.scope:
            with suppress(OpenFangError):  # the first attempt says what is wrong
                await self._recall()
            while True:
                self._nudge = anyio.Event()
                done, self._next = self._next, anyio.Event()
                await self._attempt()
                done.set()
                with anyio.move_on_after(self.pace.before(self._failures)):
                    await self._nudge.wait()

    def refresh(self) -> None:
        """Ask again, now, or once more if it is being asked; `settled` waits for that."""
        self.settled = self._next
        self._nudge.set()

    @property
    def state(self) -> PeerState:
        """How it is now."""
        card = self.source.card
        return PeerState(
            name=self.entry.name,
            url=self.entry.url,
            state=self._word(),
            card=_summary(card) if card else None,
            error=self.error,
        )

    @property
    def _shown(self) -> str:
        """The address, as it may be told."""
        return without_user(self.entry.url)

    def _word(self) -> str:
        if tool_id(Kind.A2A, self.entry.name) in self.parts.registry.snapshot.held:
            return "held"
        if self.error:
            return "unreachable"
        return "discovered" if self.source.card else "starting"

    async def _attempt(self) -> None:
        try:
            await self._learn()
        except OpenFangError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - whatever a peer does, it harms nobody but itself
            _log.exception("The A2A agent %s broke its discovery", self.entry.name)
            self._failed(OpenFangError(f"{type(error).__name__}: {error}"))

    async def _recall(self) -> None:
        """Offer what the peer said of itself before this start, until it is asked."""
        kept = self.kept
        if kept is not None and kept.url == self.entry.url:
            card = read_card(kept.card, kept.url)
            self._stored = card.digest
            self._introduced(await self._wire(), card)

    async def hear(self, kept: KeptPeer) -> None:
        """Offer what the peer has said of itself to another node since it was asked here."""
        card = read_card(kept.card, kept.url)
        if kept.url == self.entry.url and card.digest != self._stored:
            self._stored = card.digest
            self._introduced(await self._wire(), card)

    async def _learn(self) -> None:
        before, reached = self.source.card, self._reached
        wire = await self._wire()
        found = await discover(wire, before)
        if found is not before:
            clean = await to_thread.run_sync(self.parts.redactor.tree, dict(found.raw))
            found = read_card(clean, self.entry.url, found.etag)
        if self._failures or before is None or before.digest != found.digest:
            self._discovered(found)
        if found is not before or self._reached != reached:
            self._introduced(wire, found)
        if self._stored != found.digest:
            await self._keep(found)
        self.error, self._failures = "", 0

    def _introduced(self, wire: Wire, card: Card) -> None:
        if self.source.introduce(wire, card, self.rules):
            self.parts.add(Kind.A2A, self.source)

    def _discovered(self, card: Card) -> None:
        name = self.entry.name
        _log.info(
            "Discovered external A2A agent: %s (%s), url: %s, skills: %d",
            name,
            legible(card.name),
            self._shown,
            len(card.skills),
        )
        breakers = self.parts.pipeline.guards.breakers
        breakers.revived(tool_id(Kind.A2A, name), self.parts.clock.monotonic())

    async def _keep(self, card: Card) -> None:
        now = self.parts.clock.time_ns()
        kept = KeptPeer(name=self.entry.name, url=self.entry.url, card=card.raw, seen_at=now)
        await self.parts.broker.append((), (keep(kept),), (PEERS,))
        self._stored = card.digest

    async def _wire(self) -> Wire:
        self._reached = await to_thread.run_sync(self._found_out)
        return Wire(self.http, self._reached)

    def _found_out(self) -> Reached:
        """Say how the peer is reached; what `auth` refers to may not be there yet."""
        entry, auth = self.entry, ""
        if entry.auth is not None:
            auth = expand(entry.auth.get_secret_value(), self.variables())
            self.parts.redactor.learn([auth.rpartition(" ")[2]], f"a2a:{entry.name}")
            auth = auth if " " in auth else f"Bearer {auth}"
        return Reached(url=entry.url, auth=auth, allow_private=entry.allow_private)

    def _failed(self, error: OpenFangError) -> None:
        self._failures += 1
        advice = f": {error.way_out}" if error.way_out else ""
        why = error.message.removesuffix(".").replace(self.entry.url, self._shown)
        self.error = in_short(f"{why}{advice}")
        _log.warning(
            "Failed to discover external A2A agent %s at %s: %s",
            self.entry.name,
            self._shown,
            self.error,
        )


def _summary(card: Card) -> dict[str, Any]:
    return {
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "digest": card.digest,
        "dialects": sorted({one.version or one.binding for one in card.interfaces}),
        "interfaces": [one.url for one in card.interfaces],
        "streaming": card.streaming,
        "skills": [{"id": one.id, "name": one.name} for one in card.skills],
    }
