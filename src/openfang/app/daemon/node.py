"""The node as its HTTP API sees it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openfang.app.anchor import audit_body
from openfang.app.approvals.webhook import Hook
from openfang.app.auth.identify import identify, note_refusal, require
from openfang.app.daemon.events import Listening
from openfang.app.local import Local
from openfang.app.offering.local import ANYBODY
from openfang.config.show import as_dict
from openfang.core.calls import Role
from openfang.core.errors import CallRefused, GuardTripped
from openfang.core.values import dataclass
from openfang.core.wire import moment
from openfang.edges.api.node import EDGE
from openfang.edges.api.oauth import Authority
from openfang.safety.urls import without_user
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractContextManager

    import anyio

    from openfang.app.auth.doors import Doors
    from openfang.app.daemon.events import Feed
    from openfang.app.daemon.reload import Reloader
    from openfang.app.metrics.telemetry import Telemetry
    from openfang.app.parts import Parts
    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Caller
    from openfang.core.keys import Question
    from openfang.core.trace import Chain
    from openfang.guard.rate import Granted

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_READY = "ready"
_PORTS = {"http": ":80", "https": ":443"}
_INSIDERS = (Role.AUDITOR, Role.ADMIN)


@dataclass(slots=True, kw_only=True)
class ServedNode:
    """An open home behind a socket."""

    parts: Parts
    stop: anyio.Event
    doors: Doors
    telemetry: Telemetry
    reloader: Reloader
    feed: Feed
    started_at: int
    _hosts: tuple[object, frozenset[str]] = (None, frozenset())

    def recent(self, secret: str, edge: str) -> Caller | None:
        """Return who used this key a moment ago: such a one has no need to sign in."""
        return self.parts.callers.recent(secret, edge)

    async def who(self, secret: str, edge: str) -> Caller | None:
        """Return who holds this key, if it is in force and good for this edge."""
        return await self.parts.callers.find(secret, edge)

    async def sign_in(self, address: str, secret: str, edge: str) -> Caller:
        """Return who holds this key, or refuse: on record, but for an address of many guesses."""
        await self.parts.issuer.prepare(secret)
        try:
            found = await self.doors.sign_in(address, secret, partial(self.who, secret, edge))
        except GuardTripped as tripped:
            self.parts.turned_away(tripped.rule)
            raise
        return found or await identify(self.parts, secret, edge)

    def still(self, caller: Caller, secret: str, edge: str) -> Callable[[], bool]:
        """Give what says whether one who was let in would be so again; it awaits nothing."""
        return self.parts.callers.still(caller, secret, edge)

    def authority(self) -> Authority | None:
        """Say whose access tokens are accepted beside our own keys, if anybody's are."""
        issuer, url = self.parts.config.auth.issuer, self.parts.config.public_url
        if issuer is None:
            return None
        base = without_user(url) if url else None
        return Authority(issuer=issuer.url, scopes=issuer.scopes, base=base)

    def anybody(self) -> Caller | None:
        """Return who calls without a key: nobody, unless the operator said so, on loopback."""
        return None if self.parts.config.auth.require_key else ANYBODY

    async def require(self, caller: Caller, *roles: Role) -> None:
        """Refuse, on record, whoever has none of these roles."""
        await require(self.parts, caller, *roles)

    async def answer_with(self, question_id: str, token: str, by: str) -> Question:
        """Answer a question with a token of the webhook, or refuse on record."""
        try:
            return await Hook(self.parts).answer(question_id, token, by)
        except CallRefused as refusal:
            await note_refusal(self.parts, "nobody", refusal.rule, refusal.message)
            raise

    def session(self, caller: Caller, chain: Chain, edge: str = EDGE) -> Local:
        """Let this caller use the node, over this edge."""
        return Local(self.parts, caller, chain, edge)

    def charge(self, caller: Caller, work: str) -> Granted:
        """Take the cells of such a request from the caller's rate, or refuse."""
        guards = self.parts.pipeline.guards
        return guards.charge(caller, self._cells(work), self.parts.clock.monotonic())

    def check_call(self, caller: Caller, work: str = "call") -> None:
        """Refuse a call that its rate would refuse, before its body is read."""
        now = self.parts.clock.monotonic()
        self.parts.pipeline.guards.allowance(caller, self._cells(work), now)

    def allowance(self, caller: Caller) -> Granted:
        """Say what is left of the caller's rate."""
        return self.parts.pipeline.guards.allowance(caller, 0, self.parts.clock.monotonic())

    def charge_address(self, address: str, work: str) -> Granted:
        """Take the cells from the rate of an address, or refuse."""
        return self.doors.charge(address, self._cells(work))

    def allowance_of_address(self, address: str) -> Granted:
        """Say what is left of the rate of an address."""
        return self.doors.allowance(address)

    def _cells(self, work: str) -> int:
        return getattr(self.parts.config.limits.costs, work)

    def hosts(self) -> frozenset[str]:
        """Names and addresses under which the node is reached."""
        config = self.parts.config
        if self._hosts[0] is not config:
            urls = (config.public_url, config.cluster.address)
            said = {urlsplit(url).hostname or "" for url in urls if url}
            names = {*_LOOPBACK, config.listen[0].lower(), *said}
            self._hosts = config, frozenset(names)
        return self._hosts[1]

    def public_origin(self) -> str | None:
        """The origin of `public_url`, if there is one."""
        url = self.parts.config.public_url
        if url is None:
            return None
        parts = urlsplit(url.lower())
        # A page's origin names neither who signed in nor the port that goes without saying.
        place = parts.netloc.rpartition("@")[2].removesuffix(_PORTS[parts.scheme])
        return f"{parts.scheme}://{place}"

    @property
    def ready(self) -> bool:
        """Whether the node goes on; else it is ending."""
        return not self.stop.is_set()

    @property
    def state(self) -> str:
        """`ready`, or why no calls are taken."""
        members = self.parts.members
        if self.stop.is_set():
            return "stopping"
        if members is not None and members.state:
            return members.state
        return "audit unavailable" if self.parts.broker.failing else _READY

    def now(self) -> int:
        """The time, in nanoseconds since the epoch."""
        return self.parts.clock.time_ns()

    def counted(self, route: str, status: int) -> None:
        """Tell that a request was answered."""
        self.telemetry.answered(route, status)

    async def status(self, caller: Caller) -> dict[str, Any]:
        """Say how the node is; details for who may see them."""
        parts = self.parts
        body: dict[str, Any] = {
            "status": "ok" if self.state == _READY else self.state,
            "version": __version__,
            "caller": caller.id,
            "role": caller.role.value,
            "tools": len(parts.catalog.list(caller)),
        }
        if caller.role in _INSIDERS:
            body |= await self._details()
        return body

    async def _details(self) -> dict[str, Any]:
        parts = self.parts
        now = parts.clock.time_ns()
        return {
            "node": parts.writer.node,
            "pid": os.getpid(),
            "home": str(parts.home.path),
            "started_at": moment(self.started_at),
            "listeners": self.feed.listeners,
            "approvals": await parts.approvals.store.count_pending(now),
            "held": len(parts.registry.snapshot.held) + len(parts.spoken.held),
            "rules": len(parts.config.rules.file.rules),
            "audit": await audit_body(
                parts.database, parts.writer.node, parts.writer.head, parts.config
            ),
            "config": self.reloader.state(),
        }

    def config(self) -> Mapping[str, Any]:
        """Show the configuration in force, without what is secret, and how it came about."""
        return {"config": as_dict(self.parts.config), "state": self.reloader.state()}

    async def reload(self) -> Mapping[str, Any]:
        """Read the configuration anew; a bad one is an error, and the old one stays in force."""
        await self.reloader.reload()
        return {"state": self.reloader.state()}

    async def metrics(self, accept: str) -> tuple[bytes, str]:
        """Write the counters, and say in which format."""
        return await self.telemetry.scrape(accept)

    def events(
        self, caller: Caller, after: Bookmark | None, still: Callable[[], bool]
    ) -> AsyncGenerator[bytes]:
        """Stream what happens, as server-sent events; ends when the node or the key does."""
        pay = partial(self.charge, caller, "health")
        return self.feed.listen(Listening(caller=caller, after=after, still=still, pay=pay))

    def place(self, caller: Caller) -> AbstractContextManager[None]:
        """Let the caller have one more stream open, of whatever kind, or refuse."""
        return self.feed.place(caller)
