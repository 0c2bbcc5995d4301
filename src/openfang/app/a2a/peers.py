"""The agents elsewhere that a node speaks with: from configuration to tools, and on a reload."""

from __future__ import annotations

import logging
from collections import ChainMap
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.app.a2a.peer import Pace, Peer, PeerState
from openfang.app.families import around_peers
from openfang.app.servers.translate import rules_of
from openfang.core.errors import NotFound, OpenFangError
from openfang.core.ids import Kind
from openfang.core.tools import Trust
from openfang.core.values import dataclass
from openfang.sources.a2a.source import A2aSource
from openfang.storage.asked import PEERS, AskedFor
from openfang.storage.peers import KeptPeer, PeerStore, forget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from openfang.app.parts import Parts
    from openfang.config.models import Config
    from openfang.config.peers import ExternalAgent
    from openfang.registry.rules import Rules
    from openfang.sources.a2a.wire import Asks

_SETTLE_SECONDS: Final = 20.0
_log = logging.getLogger("openfang.a2a")


@dataclass(slots=True)
class Peers:
    """Keeps every configured peer known, each in a task of its own."""

    parts: Parts
    environ: Mapping[str, str]
    pace: Pace = field(default_factory=Pace)
    running: dict[str, Peer] = field(default_factory=dict[str, Peer])
    _kept: dict[str, KeptPeer] = field(default_factory=dict[str, KeptPeer])
    _group: TaskGroup | None = None
    _http: Asks | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _has_any: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Keep them until the node ends, once anybody wants one and there is one."""
        await self._wanted.wait()
        self._look(self.parts.config)
        await self._say(self.parts.config)
        await self._has_any.wait()
        from openfang.host.http import HttpClient  # noqa: PLC0415 - aiohttp takes 0.4 s

        async with HttpClient(connections=0) as http, anyio.create_task_group() as group:
            self._http, self._group = http, group
            self._kept = await PeerStore(self.parts.database).all()
            self.apply(self.parts.config)
            await self._forget_others(self.parts.config)
            self._begun.set()
            await anyio.sleep_forever()

    async def _say(self, config: Config) -> None:
        """Say to other nodes which peers are asked for here; if that cannot be, with the next."""
        try:
            await self._asked.say(PEERS, configured(config))
        except OpenFangError as error:
            _log.warning("Other nodes are not told which peers there are: %s", error.message)

    @property
    def _asked(self) -> AskedFor:
        return AskedFor(self.parts.database, self.parts.writer)

    def want(self) -> None:
        """Begin to look for them, in the background."""
        self._wanted.set()

    async def settled(self, name: str = "") -> None:
        """Begin, and wait until it is known of each, or of one, whether it can be reached."""
        if not configured(self.parts.config):
            return
        self.want()
        await self._begun.wait()
        with anyio.move_on_after(_SETTLE_SECONDS):
            for peer in list(self.running.values()):
                if name in {"", peer.entry.name}:
                    await peer.settled.wait()

    async def again(self, name: str) -> None:
        """Ask one for its card now, and wait for that."""
        if name in self.running:
            self.running[name].refresh()
        await self.settled(name)

    def apply(self, config: Config) -> None:
        """Begin what is new, end what is gone, replace what changed; the others go on."""
        self._look(config)
        if self._group is None:
            return
        self._group.start_soon(self._say, config)
        wanted, rules = configured(config), rules_of(config)
        for name in [name for name in self.running if name not in wanted]:
            self._end(name)
        for entry in wanted.values():
            current = self.running.get(entry.name)
            if current is None or (current.entry, current.rules) != (entry, rules):
                self._begin(entry, rules)

    async def look_again(self) -> None:
        """See how peers have introduced themselves to other nodes."""
        if not self.running:
            return
        kept = await PeerStore(self.parts.database).all()
        for name, peer in list(self.running.items()):
            if name in kept:
                await peer.hear(kept[name])

    def states(self) -> list[PeerState]:
        """Say of each how it is, by name."""
        return [peer.state for _, peer in sorted(self.running.items())]

    def find(self, name: str) -> Peer:
        """Find one that is configured."""
        peer = self.running.get(name)
        if peer is None:
            raise NotFound(
                f"No A2A agent {name} is configured.", way_out="[[a2a.external_agents]] names them"
            )
        return peer

    def _look(self, config: Config) -> None:
        if configured(config):
            self._has_any.set()

    def _begin(self, entry: ExternalAgent, rules: Rules) -> None:
        assert self._group is not None  # noqa: S101 - `run` was called
        assert self._http is not None  # noqa: S101 - as above
        former = self.running.get(entry.name)
        if former is not None:
            former.scope.cancel()
        if former is not None and former.entry != entry:
            self.parts.remove(Kind.A2A, entry.name)  # nothing more goes where it was
        peer = self.running[entry.name] = Peer(
            entry=entry,
            source=A2aSource(entry.name, around_peers(self.parts), trust=Trust(entry.trust)),
            parts=self.parts,
            http=self._http,
            rules=rules,
            pace=self.pace,
            variables=self._variables,
            kept=self._kept_of(entry, former),
        )
        self._group.start_soon(peer.run)

    def _kept_of(self, entry: ExternalAgent, former: Peer | None) -> KeptPeer | None:
        """Give what is known of a peer: what it said last, here or before this start."""
        card = former.source.card if former is not None else None
        if former is None or card is None:
            return self._kept.get(entry.name)
        return KeptPeer(name=entry.name, url=former.entry.url, card=card.raw, seen_at=0)

    def _end(self, name: str) -> None:
        self.running.pop(name).scope.cancel()
        self.parts.remove(Kind.A2A, name)
        self._kept.pop(name, None)

    def _variables(self) -> Mapping[str, str]:
        """What `${NAME}` stands for: a variable of ours, else a secret that is stored."""
        store = self.parts.secrets
        return ChainMap(dict(self.environ), {name: store.get(name) for name in store.names()})

    async def _forget_others(self, config: Config) -> None:
        names = self._kept.keys() - configured(config).keys() - await self._asked.elsewhere(PEERS)
        if names:
            gone = tuple(one for name in names for one in forget(name))
            await self.parts.broker.append((), gone)


def configured(config: Config) -> dict[str, ExternalAgent]:
    """Name the peers that are to be known: none while A2A is switched off."""
    return {one.name: one for one in config.a2a.external_agents} if config.a2a.enabled else {}
