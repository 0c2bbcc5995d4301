"""The house, put together: everything by its name."""

from __future__ import annotations

import os
from dataclasses import field
from typing import TYPE_CHECKING

from anyio import Lock

from openfang.app.news import News
from openfang.app.schedules.book import Book
from openfang.app.schedules.triggers import Events
from openfang.config.home import user_home
from openfang.core.usage import NOTHING
from openfang.core.values import dataclass
from openfang.guard.rate import Limiter
from openfang.safety.urls import without_user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from openfang.app.a2a.peers import Peers
    from openfang.app.a2a.push import Pushes
    from openfang.app.agents.later import Later
    from openfang.app.auth.callers import Callers
    from openfang.app.auth.issuer import TrustedIssuer
    from openfang.app.cluster.durable.later import LaterQueues
    from openfang.app.cluster.members import Members
    from openfang.app.cluster.singletons import Singletons
    from openfang.app.confine import Confiner
    from openfang.app.extensions.house import Extensions
    from openfang.app.home.paths import Home
    from openfang.app.installs.house import Installs
    from openfang.app.nodes.hops import NodeHops
    from openfang.app.servers.running import Servers
    from openfang.app.sinks import Sinks
    from openfang.app.stores import Backlog
    from openfang.app.timers import Timers
    from openfang.audit.broker import Broker
    from openfang.config.models import Config
    from openfang.core.agents import Asked
    from openfang.core.calls import Call
    from openfang.core.decisions import Deny
    from openfang.core.ids import Kind
    from openfang.core.ports import Clock, ToolSource
    from openfang.core.results import Result
    from openfang.core.trace import Chain
    from openfang.core.usage import Spending
    from openfang.host.command import Command
    from openfang.host.process import Launch
    from openfang.host.secrets import MasterKey, SecretStore
    from openfang.pipeline.catalog import Catalog
    from openfang.pipeline.invoke import Pipeline
    from openfang.pipeline.tasks.service import TaskService
    from openfang.policy.approvals import Approvals
    from openfang.registry.registry import Registry
    from openfang.registry.spoken import Spoken
    from openfang.safety.redact import Redactor
    from openfang.storage.keys import KeyStore
    from openfang.storage.ports import Storage, Writes
    from openfang.storage.specs import SpecStore
    from openfang.storage.state import BlobStore


def _uncounted(rule: str) -> None:
    """Nobody counts refusals outside of a daemon."""
    del rule


@dataclass(slots=True, kw_only=True)
class Parts:
    """Everything that was put together, by name. Only a new configuration changes any of it."""

    home: Home
    config: Config
    clock: Clock
    database: Storage
    writer: Writes
    master: MasterKey
    secrets: SecretStore
    redactor: Redactor
    broker: Broker
    keys: KeyStore
    callers: Callers
    issuer: TrustedIssuer
    specs: SpecStore
    blobs: BlobStore
    approvals: Approvals
    registry: Registry
    spoken: Spoken
    catalog: Catalog
    pipeline: Pipeline
    sources: dict[tuple[Kind, str], ToolSource]
    checks: dict[str, Callable[[Call], Deny | None]]
    sinks: Sinks
    backlog: Backlog
    tasks: TaskService
    pushes: Pushes
    timers: Timers
    hops: NodeHops
    address: str = ""
    ending: bool = False
    changing: Lock = field(default_factory=Lock)  # one change of the configuration at a time
    news: News = field(default_factory=News)
    members: Members | None = None  # where several nodes may share a database
    servers: Servers | None = None
    agents: Later | None = None
    peers: Peers | None = None
    extensions: Extensions | None = None
    installs: Installs | None = None
    once: Singletons | None = None  # only in a daemon, and only where there can be other nodes
    queues: LaterQueues | None = None
    schedules: Book = field(init=False)
    events: Events = field(init=False)
    paces: Limiter = field(default_factory=Limiter)  # how often each provider of models is asked
    turned_away: Callable[[str], None] = _uncounted
    spent: Spending = NOTHING  # by agents, since the start of the process
    models_told: Callable[[Chain, Asked], None] | None = None
    confiner: Confiner | None = None

    def confined(self, command: Command) -> AbstractAsyncContextManager[Launch]:
        """Say how other people's programs are started here."""
        if self.confiner is None:
            # Sandbox and processes are a tenth of a command's start, and few commands need them.
            from openfang.app.confine import Confiner  # noqa: PLC0415 - as above

            self.confiner = Confiner(self.home.path, user_home(os.environ))
        return self.confiner.command(command)

    @property
    def reached_at(self) -> str:
        """The address under which others reach the node, without a slash at its end."""
        url = self.config.public_url
        if url is not None:
            return without_user(url)
        return self.address or "http://{}:{}".format(*self.config.listen)

    def __post_init__(self) -> None:
        self.schedules = Book(self)
        self.events = Events(self)

    def invoke(self, call: Call) -> Awaitable[Result]:
        """Take a call through the one path."""
        return self.pipeline.invoke(call)

    def thought(self, chain: Chain, asked: Asked) -> None:
        """Tell of a question to a model, if somebody follows the calls."""
        if self.models_told is not None:
            self.models_told(chain, asked)

    def add(self, kind: Kind, source: ToolSource) -> None:
        """Take a source in: its tools are listed, and its calls reach it."""
        self.sources[kind, source.name] = source
        self.registry.refresh(f"{kind.value}:{source.name}", source)

    def remove(self, kind: Kind, name: str) -> None:
        """Let a source go: its tools are listed no longer."""
        self.sources.pop((kind, name), None)
        self.registry.replace_source(f"{kind.value}:{name}", ())

    @property
    def hands_on(self) -> bool:
        """Whether another process goes on with what is under way here."""
        return self.ending or (self.members is not None and self.members.cut)

    async def aclose(self) -> None:
        """Give everything back."""
        if self.members is not None:
            await self.members.beating.aclose()
        await self.writer.aclose()
        self.broker.process.release()
        await self.database.aclose()
