"""Puts the house together: configuration in, a pipeline out. Only this module sees both ends."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias, cast

from openfang.app.a2a.push import Pushes
from openfang.app.a2a.targets import Targets
from openfang.app.approvals.webhook import Hook
from openfang.app.auth.callers import Callers
from openfang.app.auth.credentials import Credentials
from openfang.app.auth.issuer import TrustedIssuer
from openfang.app.clock import SystemClock
from openfang.app.definitions import records_of, scanning_of, scans_of, sift_again
from openfang.app.families import builtins_of, switched_off
from openfang.app.heirs import Heirs
from openfang.app.home.naming import first_name
from openfang.app.home.new import require_master_key
from openfang.app.limits import configure_guards, guards_of
from openfang.app.nodes.hops import NodeHops
from openfang.app.opening import open_storage
from openfang.app.parts import Parts
from openfang.app.plugins import load_gates, load_plugin
from openfang.app.sinks import Sinks, configured_sinks
from openfang.app.stores import Backlog, StoredNames, StoredPins
from openfang.app.timers import Timers
from openfang.app.wording import operators_words
from openfang.audit.broker import Broker
from openfang.config.load import load
from openfang.core.errors import HomeError
from openfang.core.ids import Kind
from openfang.core.news import Listed
from openfang.core.values import dataclass
from openfang.host.secrets import MasterKey, SecretStore
from openfang.pipeline.catalog import Catalog
from openfang.pipeline.execute import Executor
from openfang.pipeline.flow import Flow
from openfang.pipeline.invoke import Pipeline
from openfang.pipeline.papers import Archive
from openfang.pipeline.runs import RunLabels
from openfang.pipeline.shape import Shaper
from openfang.pipeline.stamp import Stamper
from openfang.pipeline.tasks.service import TaskBounds, TaskService
from openfang.pipeline.trusted import TrustedTexts
from openfang.policy.approvals import Approvals, Terms
from openfang.policy.engine import Engine
from openfang.policy.gates import standard_gates
from openfang.policy.rules.book import Book
from openfang.registry.board import Board
from openfang.registry.registry import Registry
from openfang.registry.spoken import Spoken
from openfang.safety.redact import Redactor
from openfang.storage.approvals import ApprovalStore
from openfang.storage.keys import KeyStore
from openfang.storage.processes import Process
from openfang.storage.pushes import PushStore
from openfang.storage.specs import SpecStore
from openfang.storage.state import BlobStore, RunStore
from openfang.storage.tasks import TaskStore
from openfang.storage.timers import TimerStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.app.home.paths import Home
    from openfang.config.models import Config
    from openfang.core.calls import Call
    from openfang.core.decisions import Deny
    from openfang.core.ports import Clock, Gate, ToolSource
    from openfang.storage.ports import Storage, Writes
    from openfang.storage.postgres.writer import PostgresWriter

    Check: TypeAlias = Callable[[Call], Deny | None]
    Checks: TypeAlias = dict[str, Check]
    Sources: TypeAlias = dict[tuple[Kind, str], ToolSource]
    Current: TypeAlias = Callable[[], Config]

_SECOND = 1_000_000_000


async def build(home: Home, environ: Mapping[str, str], *, clock: Clock | None = None) -> Parts:
    """Build everything on an existing home."""
    if not home.exists:
        raise HomeError(
            f"There is no OpenFang home at {home.path}.",
            way_out="openfang init, or set OPENFANG_HOME",
        )
    config = load(home.path, environ)
    clock = clock or SystemClock()
    database, writer = await open_storage(home, config, clock)
    try:
        ground = _ground(home, config, (database, writer), clock)
        if database.dialect != "sqlite":
            from openfang.app.cluster.sealing import check_key  # noqa: PLC0415 - start-up time

            await check_key(database, writer, ground.master)
        return await _build(ground)
    except BaseException:
        await writer.aclose()
        await database.aclose()
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What everything else stands on."""

    home: Home
    config: Config
    clock: Clock
    database: Storage
    master: MasterKey
    secrets: SecretStore
    redactor: Redactor
    writer: Writes
    broker: Broker


def _ground(home: Home, config: Config, opened: tuple[Storage, Writes], clock: Clock) -> _Ground:
    database, writer = opened
    require_master_key(home, config)
    master = MasterKey.open(home.path, keyring=config.secrets.keyring)
    secrets = SecretStore(home.path, master)
    redactor = Redactor(master.derive("redaction"), [secrets.get(name) for name in secrets.names()])
    broker = Broker(
        writer=writer,
        process=_process(home, database, writer),
        redact=lambda text: redactor.json_text(text).text,
    )
    return _Ground(
        home=home,
        config=config,
        clock=clock,
        database=database,
        master=master,
        secrets=secrets,
        redactor=redactor,
        writer=writer,
        broker=broker,
    )


def _process(home: Home, database: Storage, writer: Writes) -> Process:
    process = Process(home.processes, writer.node)
    if database.dialect != "sqlite":
        from openfang.storage.postgres.roll import Beats  # noqa: PLC0415 - start-up time

        process.roll = Beats(database, process)
        cast("PostgresWriter", writer).process = process
    return process


async def _build(ground: _Ground) -> Parts:
    config, clock, database = ground.config, ground.clock, ground.database

    def current() -> Config:
        return parts.config

    backlog = Backlog(ground.writer)
    keys = KeyStore(database, ground.master.derive("api-keys"), clock.time_ns)
    issuer = TrustedIssuer(clock, config.auth.issuer)
    timers = Timers(
        store=TimerStore(database),
        writer=ground.writer,
        clock=clock,
        process=lambda: ground.broker.process.id,
    )
    timers.listen(database)
    pushes = _pushes(ground, current)
    means = _Means(
        registry=await _registry(ground, backlog, current),
        keys=keys,
        specs=SpecStore(database),
        approvals=_approvals(ground),
    )
    pipeline = _pipeline(ground, means, current)
    parts = Parts(
        home=ground.home,
        config=config,
        clock=clock,
        database=database,
        writer=ground.writer,
        master=ground.master,
        secrets=ground.secrets,
        redactor=ground.redactor,
        broker=ground.broker,
        keys=keys,
        callers=Callers(Credentials(keys, issuer, current), clock),
        issuer=issuer,
        specs=means.specs,
        blobs=BlobStore(database),
        approvals=means.approvals,
        registry=means.registry,
        spoken=Spoken(means.registry.board, lambda name: scanning_of(current(), Kind.MCP, name)),
        catalog=pipeline.catalog,
        pipeline=pipeline,
        sources=means.sources,
        checks=means.checks,
        sinks=_sinks(ground),
        backlog=backlog,
        tasks=_tasks(ground, pushes, timers, current),
        pushes=pushes,
        timers=timers,
        hops=_hops(ground, pipeline, await first_name(database)),
    )
    parts.approvals.outbox, parts.approvals.committed = Hook(parts).outbox, timers.wake
    await pushes.load()
    _add_builtins(parts)
    return parts


def _hops(ground: _Ground, pipeline: Pipeline, name: str) -> NodeHops:
    hops = NodeHops(
        node=name,
        clock=ground.clock,
        chains=pipeline.guards.chains,
        signing=ground.master.signing_key,
    )
    hops.configure(ground.config)
    return hops


@dataclass(frozen=True, slots=True, kw_only=True)
class _Means:
    """What the path looks things up in; sources and checks come and go."""

    registry: Registry
    keys: KeyStore
    specs: SpecStore
    approvals: Approvals
    sources: Sources = field(default_factory=dict["tuple[Kind, str]", "ToolSource"])
    checks: Checks = field(default_factory=dict[str, "Check"])


async def _registry(ground: _Ground, backlog: Backlog, current: Current) -> Registry:
    return Registry(
        names=await StoredNames.read(ground.database, backlog),
        board=Board(
            await StoredPins.read(ground.database, backlog),
            ground.clock,
            lambda verdicts: backlog.add(ground.broker.unit(records_of(verdicts))),
        ),
        adapters=[load_plugin(plugin) for plugin in ground.config.plugins.adapters],
        off=lambda tool: switched_off(current(), tool),
        scanning=lambda tool: scanning_of(current(), tool.kind, tool.source),
    )


def _approvals(ground: _Ground) -> Approvals:
    approvals = Approvals(
        store=ApprovalStore(ground.database),
        append=ground.broker.append,
        redact=ground.broker.redact,
        now=ground.clock.time_ns,
        terms=_terms(ground.config),
    )
    approvals.waits.listen(ground.database)
    return approvals


def _terms(config: Config) -> Terms:
    said = config.approvals
    return Terms(
        timeout_ns=int(said.timeout_secs * _SECOND),
        most=said.max_pending,
        four_eyes=said.four_eyes,
        ask_clients=said.ask_clients,
    )


def _pipeline(ground: _Ground, means: _Means, current: Current) -> Pipeline:
    config, clock, guards = ground.config, ground.clock, guards_of(ground.config)
    custom = load_gates(config.plugins.gates)
    rules = _rules(config, clock)
    return Pipeline(
        catalog=Catalog(means.registry, rules),
        executor=Executor(
            sources=means.sources, guards=guards, redactor=ground.redactor, clock=clock
        ),
        guards=guards,
        engine=Engine(_gates(config, means.checks), custom, rules),
        runs=RunLabels(RunStore(ground.database), clock.time_ns),
        flow=Flow(TrustedTexts(standing=lambda: operators_words(current())), ground.redactor),
        archive=Archive(means.specs, means.keys),
        approvals=means.approvals,
        audit=ground.broker,
        shaper=_shaper(config, ground.redactor, clock),
        stamper=Stamper(),
        clock=clock,
        tool_seconds=config.tools.timeout_secs,
    )


def _sinks(ground: _Ground) -> Sinks:
    lock = ground.home.processes / "sinks.lock"
    heirs = Heirs(ground.database, ground.writer)
    return Sinks(ground.database, ground.writer, lock, heirs, configured_sinks(ground.config))


def _pushes(ground: _Ground, current: Current) -> Pushes:
    return Pushes(
        store=PushStore(ground.database, ground.master.derive("a2a-push")),
        tasks=TaskStore(ground.database),
        append=ground.broker.append,
        clock=ground.clock,
        targets=Targets(allow_private=lambda: current().a2a.push.allow_private),
    )


def _tasks(ground: _Ground, pushes: Pushes, timers: Timers, current: Current) -> TaskService:
    broker = ground.broker
    tasks = TaskService(
        store=TaskStore(ground.database),
        append=broker.append,
        process=broker.process,
        low_water=lambda: broker.low_water,
        now=ground.clock.time_ns,
        bounds=lambda: TaskBounds(most=current().a2a.max_tasks),
        outbox=pushes.outbox,
        committed=timers.wake,
        audience=None if ground.database.dialect == "sqlite" else pushes,
    )
    tasks.listen(ground.database)
    return tasks


def reconfigure(parts: Parts, config: Config) -> None:
    """Put another configuration in force, at once and as a whole; calls in flight go on."""
    custom = parts.pipeline.engine.custom  # the operator's own code is loaded at a start only
    rules = _rules(config, parts.clock)
    engine = Engine(_gates(config, parts.checks), custom, rules)
    shaper = _shaper(config, parts.redactor, parts.clock)
    pipeline = parts.pipeline
    before, parts.config = parts.config, config
    parts.issuer.configure(config.auth.issuer)
    parts.callers.forget()
    pipeline.engine, pipeline.shaper, pipeline.catalog.rules = engine, shaper, rules
    pipeline.tool_seconds = config.tools.timeout_secs
    configure_guards(pipeline.guards, config)
    parts.hops.configure(config)
    parts.approvals.terms = _terms(config)
    _add_builtins(parts)
    if (config.tools.disabled, scans_of(config)) != (before.tools.disabled, scans_of(before)):
        for (kind, _), source in list(parts.sources.items()):
            parts.add(kind, source)
        sift_again(parts)
    parts.news.publish(Listed.TOOLS)  # a toolset may be another


def _add_builtins(parts: Parts) -> None:
    builtins = builtins_of(parts)
    parts.checks.update(builtins.checks)
    parts.add(Kind.BUILTIN, builtins)


def _gates(config: Config, checks: Checks) -> tuple[Gate, ...]:
    return standard_gates(checks=checks, guided=config.policy.profile == "guided")


def _rules(config: Config, clock: Clock) -> Book | None:
    """Index the operator's rules; without any there is nothing to ask."""
    rules = config.rules.compiled
    return Book(rules, clock.time_ns) if rules else None


def _shaper(config: Config, redactor: Redactor, clock: Clock) -> Shaper:
    results = config.results
    return Shaper(
        redactor=redactor,
        now=clock.time_ns,
        max_chars=results.max_chars,
        max_binary_bytes=results.max_binary_bytes,
        keep_ns=results.keep_secs * _SECOND,
    )
