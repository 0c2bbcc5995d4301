"""Puts the house together: configuration in, a pipeline out. Only this module sees both ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, Lock

from openfang.app.a2a.push import Pushes
from openfang.app.a2a.targets import Targets
from openfang.app.callers import Callers
from openfang.app.clock import SystemClock
from openfang.app.families import builtins_of, switched_off
from openfang.app.home import require_master_key
from openfang.app.identify import find_key
from openfang.app.issuer import TrustedIssuer
from openfang.app.news import News
from openfang.app.plugins import load_gates, load_plugin
from openfang.app.sinks import Sinks, configured_sinks
from openfang.app.stores import Backlog, StoredNames, StoredPins
from openfang.app.timers import Timers
from openfang.audit.broker import Broker
from openfang.audit.chain import digest
from openfang.config.load import load
from openfang.core.errors import HomeError
from openfang.core.events import TOOL_HELD, Record
from openfang.core.ids import Kind
from openfang.core.news import Listed
from openfang.guard.breaker import BreakerLimits, Breakers
from openfang.guard.loops import LoopLimits, Loops
from openfang.guard.rate import Quota
from openfang.guard.recursion import ChainLimits, Chains
from openfang.host.secrets import MasterKey, SecretStore
from openfang.pipeline.catalog import Catalog
from openfang.pipeline.execute import Executor
from openfang.pipeline.guards import Guards
from openfang.pipeline.invoke import Pipeline
from openfang.pipeline.runs import RunLabels
from openfang.pipeline.shape import Shaper
from openfang.pipeline.stamp import Stamper
from openfang.pipeline.tasks.service import TaskBounds, TaskService
from openfang.policy.approvals import Approvals
from openfang.policy.engine import Engine
from openfang.policy.gates import standard_gates
from openfang.policy.grants import matches
from openfang.registry.registry import Registry
from openfang.safety.redact import Redactor
from openfang.safety.urls import without_user
from openfang.storage.approvals import ApprovalStore
from openfang.storage.database import Database, open_home
from openfang.storage.keys import KeyStore
from openfang.storage.processes import Process
from openfang.storage.pushes import PushStore
from openfang.storage.specs import SpecStore
from openfang.storage.state import BlobStore, RunStore, Settings
from openfang.storage.tasks import TaskStore
from openfang.storage.timers import TimerStore
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openfang.app.a2a.peers import Peers
    from openfang.app.later import Later
    from openfang.app.paths import Home
    from openfang.app.servers import Servers
    from openfang.config.models import Config
    from openfang.core.calls import Call
    from openfang.core.decisions import Deny
    from openfang.core.ports import Clock, Gate, ToolSource
    from openfang.core.results import Result
    from openfang.registry.pins import Changed

_SECOND = 1_000_000_000
_READERS = 2


def _uncounted(rule: str) -> None:
    """Nobody counts refusals outside of a daemon."""
    del rule


@dataclass(slots=True, kw_only=True)
class Parts:
    """Everything that was put together, by name. Only `reconfigure` changes any of it."""

    home: Home
    config: Config
    clock: Clock
    database: Database
    writer: Writer
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
    catalog: Catalog
    pipeline: Pipeline
    sources: dict[tuple[Kind, str], ToolSource]
    checks: dict[str, Callable[[Call], Deny | None]]
    sinks: Sinks
    readers: CapacityLimiter
    backlog: Backlog
    tasks: TaskService
    pushes: Pushes
    timers: Timers
    address: str = ""
    ending: bool = False
    changing: Lock = field(default_factory=Lock)  # one change of the configuration at a time
    news: News = field(default_factory=News)
    servers: Servers | None = None
    agents: Later | None = None
    peers: Peers | None = None
    turned_away: Callable[[str], None] = _uncounted

    @property
    def reached_at(self) -> str:
        """The address under which others reach the node, without a slash at its end."""
        url = self.config.public_url
        if url is not None:
            return without_user(url)
        return self.address or "http://{}:{}".format(*self.config.listen)

    def invoke(self, call: Call) -> Awaitable[Result]:
        """Take a call through the one path."""
        return self.pipeline.invoke(call)

    def add(self, kind: Kind, source: ToolSource) -> None:
        """Take a source in: its tools are listed, and its calls reach it."""
        self.sources[kind, source.name] = source
        known = self.registry.snapshot.held
        self.registry.refresh(f"{kind.value}:{source.name}", source)
        held = self.registry.snapshot.held
        records = [_held(tool, held[tool]) for tool in held if tool not in known]
        if records:
            self.backlog.add(self.broker.unit(records))

    def remove(self, kind: Kind, name: str) -> None:
        """Let a source go: its tools are listed no longer."""
        self.sources.pop((kind, name), None)
        self.registry.replace_source(f"{kind.value}:{name}", ())

    def close(self) -> None:
        """Give every file back."""
        self.writer.close()
        self.broker.process.release()
        self.database.close()


def _held(tool: str, change: Changed) -> Record:
    payload = {"was": change.pin.digest, "now": change.digest, "diff": change.diff}
    return Record(event=TOOL_HELD, level="warning", payload=payload, context={"tool": tool})


def build(home: Home, environ: Mapping[str, str], *, clock: Clock | None = None) -> Parts:
    """Build everything on an existing home."""
    if not home.exists:
        raise HomeError(
            f"There is no OpenFang home at {home.path}.",
            way_out="openfang init, or set OPENFANG_HOME",
        )
    config = load(home.path, environ)
    database = open_home(home.database(config), durable=config.audit.fsync)
    try:
        return _build(home, config, database, clock or SystemClock())
    except BaseException:
        database.close()
        raise


def _build(home: Home, config: Config, database: Database, clock: Clock) -> Parts:
    require_master_key(home, config)
    master = MasterKey.open(home.path, keyring=config.secrets.keyring)
    secrets = SecretStore(home.path, master)
    redactor = Redactor(master.derive("redaction"), [secrets.get(name) for name in secrets.names()])
    writer = Writer(
        path=home.database(config),
        node=_node(database),
        digest=digest,
        durable=config.audit.fsync,
        now=clock.time_ns,
    )
    broker = Broker(
        writer=writer,
        process=Process(home.processes),
        redact=lambda text: redactor.json_text(text).text,
    )
    keys = KeyStore(database, master.derive("api-keys"), clock.time_ns)
    specs = SpecStore(database)
    approvals = Approvals(
        store=ApprovalStore(database),
        append=broker.append,
        redact=broker.redact,
        now=clock.time_ns,
        timeout_ns=int(config.approvals.timeout_secs * _SECOND),
    )
    backlog = Backlog(writer)
    registry = Registry(
        names=StoredNames(database, backlog),
        pins=StoredPins(database, backlog),
        clock=clock,
        adapters=[load_plugin(plugin) for plugin in config.plugins.adapters],
        off=lambda tool: switched_off(parts.config, tool),
    )
    stamper = Stamper()
    sources: dict[tuple[Kind, str], ToolSource] = {}
    checks: dict[str, Callable[[Call], Deny | None]] = {}
    catalog = Catalog(registry)
    guards = _guards(config)
    pipeline = Pipeline(
        catalog=catalog,
        executor=Executor(sources=sources, guards=guards, redactor=redactor, clock=clock),
        guards=guards,
        engine=_engine(config, specs, keys, checks, load_gates(config.plugins.gates)),
        runs=RunLabels(RunStore(database), clock.time_ns),
        approvals=approvals,
        audit=broker,
        shaper=_shaper(config, redactor, clock),
        stamper=stamper,
        clock=clock,
        tool_seconds=config.tools.timeout_secs,
    )
    timers = Timers(store=TimerStore(database), writer=writer, clock=clock)
    pushes = Pushes(
        store=PushStore(database, master.derive("a2a-push")),
        tasks=TaskStore(database),
        append=broker.append,
        clock=clock,
        targets=Targets(allow_private=lambda: parts.config.a2a.push.allow_private),
    )
    parts = Parts(
        home=home,
        config=config,
        clock=clock,
        database=database,
        writer=writer,
        master=master,
        secrets=secrets,
        redactor=redactor,
        broker=broker,
        keys=keys,
        callers=Callers(lambda secret: find_key(parts, secret), clock),
        issuer=TrustedIssuer(clock, config.auth.issuer),
        specs=specs,
        blobs=BlobStore(database),
        approvals=approvals,
        registry=registry,
        catalog=catalog,
        pipeline=pipeline,
        sources=sources,
        checks=checks,
        sinks=Sinks(database, writer, home.processes / "sinks.lock", configured_sinks(config)),
        readers=CapacityLimiter(_READERS),
        backlog=backlog,
        tasks=_tasks(database, broker, clock, pushes, timers, lambda: parts.config),
        pushes=pushes,
        timers=timers,
    )
    _add_builtins(parts)
    return parts


def _tasks(  # noqa: PLR0913, PLR0917 - what a task is kept in, each once
    database: Database,
    broker: Broker,
    clock: Clock,
    pushes: Pushes,
    timers: Timers,
    config: Callable[[], Config],
) -> TaskService:
    return TaskService(
        store=TaskStore(database),
        append=broker.append,
        process=broker.process,
        low_water=lambda: broker.low_water,
        now=clock.time_ns,
        bounds=lambda: TaskBounds(most=config().a2a.max_tasks),
        outbox=pushes.outbox,
        committed=timers.wake,
    )


def reconfigure(parts: Parts, config: Config) -> None:
    """Put another configuration in force, at once and as a whole; calls in flight go on."""
    custom = parts.pipeline.engine.custom  # the operator's own code is loaded at a start only
    engine = _engine(config, parts.specs, parts.keys, parts.checks, custom)
    shaper = _shaper(config, parts.redactor, parts.clock)
    pipeline = parts.pipeline
    before, parts.config = parts.config, config
    parts.issuer.configure(config.auth.issuer)
    parts.callers.forget()
    pipeline.engine, pipeline.shaper = engine, shaper
    pipeline.tool_seconds = config.tools.timeout_secs
    _configure_guards(pipeline.guards, config)
    parts.approvals.timeout_ns = int(config.approvals.timeout_secs * _SECOND)
    _add_builtins(parts)
    if config.tools.disabled != before.tools.disabled:
        for (kind, _), source in list(parts.sources.items()):
            parts.add(kind, source)
    parts.news.publish(Listed.TOOLS)  # a toolset may be another


def _add_builtins(parts: Parts) -> None:
    builtins = builtins_of(parts)
    parts.checks.update(builtins.checks)
    parts.add(Kind.BUILTIN, builtins)


def _node(database: Database) -> str:
    node = Settings(database).get("node")
    if node is None:
        raise HomeError("The home is only half made: it has no node.", way_out="openfang init")
    return node


def _engine(
    config: Config,
    specs: SpecStore,
    keys: KeyStore,
    checks: Mapping[str, Callable[[Call], Deny | None]],
    custom: tuple[Gate, ...],
) -> Engine:
    def valid(secret: str, tool: str) -> bool:
        token = keys.find_token(secret)
        return token is not None and matches(token.tools, tool)

    guided = config.policy.profile == "guided"
    gates = standard_gates(frozen=specs.frozen, valid=valid, checks=checks, guided=guided)
    return Engine(gates, custom)


def _guards(config: Config) -> Guards:
    limits = config.limits
    return Guards(
        quota=quota_of(config),
        call_cost=limits.costs.call,
        message_cost=limits.costs.message,
        chains=Chains(_chain_limits(config)),
        loops=Loops(_loop_limits(config)),
        breakers=Breakers(_breaker_limits(config)),
    )


def _configure_guards(guards: Guards, config: Config) -> None:
    """Change the limits; what was counted stays."""
    guards.quota, guards.call_cost = quota_of(config), config.limits.costs.call
    guards.message_cost = config.limits.costs.message
    guards.chains.configure(_chain_limits(config))
    guards.loops.configure(_loop_limits(config))
    guards.breakers.configure(_breaker_limits(config))


def quota_of(config: Config) -> Quota:
    """Return the rate that each caller and each address has."""
    return Quota(cells_per_minute=config.limits.cells_per_minute, burst=config.limits.burst)


def _breaker_limits(config: Config) -> BreakerLimits:
    return BreakerLimits(rest=config.guard.breaker_secs)


def _chain_limits(config: Config) -> ChainLimits:
    guard = config.guard
    return ChainLimits(
        depth=guard.max_depth,
        agent_calls=guard.agent_calls,
        tool_calls=guard.tool_calls,
        at_once=guard.calls_at_once,
        edge=BreakerLimits(failures=3, rest=guard.breaker_secs),
    )


def _loop_limits(config: Config) -> LoopLimits:
    loops = config.loops
    return LoopLimits(
        warn_calls=loops.warn,
        block_calls=loops.block,
        warn_outcomes=loops.outcome_warn,
        block_outcomes=loops.outcome_block,
        poll_factor=loops.poll_factor,
        stale_calls=loops.no_progress,
    )


def _shaper(config: Config, redactor: Redactor, clock: Clock) -> Shaper:
    results = config.results
    return Shaper(
        redactor=redactor,
        now=clock.time_ns,
        max_chars=results.max_chars,
        max_binary_bytes=results.max_binary_bytes,
        keep_ns=results.keep_secs * _SECOND,
    )
