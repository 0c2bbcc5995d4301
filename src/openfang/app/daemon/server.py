"""What a daemon serves: the node, its edges, and what runs beside them."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio

from openfang.app.a2a.house import NodeHouse
from openfang.app.a2a.watching import watch_over
from openfang.app.approvals.timing import watch_approvals
from openfang.app.auth.doors import Doors, RightKeys
from openfang.app.daemon.events import Feed
from openfang.app.daemon.node import ServedNode
from openfang.app.daemon.reload import Reloader
from openfang.app.limits import quota_of
from openfang.app.logs.log import dropped_lines
from openfang.app.metrics.telemetry import Readings, Telemetry
from openfang.app.offering.offers import Offers
from openfang.app.schedules.watching import watch_schedules
from openfang.app.servers.running import Servers
from openfang.app.shelf import HomeShelf
from openfang.app.spending import fold_now_and_then
from openfang.app.tracing.watching import watch_telemetry
from openfang.core.values import dataclass
from openfang.edges.a2a.edge import A2aEdge
from openfang.edges.api.app import Api
from openfang.edges.mcp.handler import Handler
from openfang.edges.mcp.http import McpEdge
from openfang.edges.mcp.sessions import Sessions
from openfang.edges.openai.edge import OpenAiEdge
from openfang.edges.web.edge import WebEdge
from openfang.storage.log import last_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from openfang.app.cluster.singletons import Singletons
    from openfang.app.cluster.talks import Talks
    from openfang.app.parts import Parts
    from openfang.audit.broker import Broker
    from openfang.config.models import Config
    from openfang.edges.web.ports import Watch
    from openfang.edges.web.signed import Browsers
    from openfang.policy.approvals import Approvals
    from openfang.storage.postgres.database import PostgresStorage
    from openfang.storage.postgres.writer import PostgresWriter

# Streams may take a quarter of all connections, calls that wait for a person another one.
_A_SHARE = 4
_TRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The application, and what must run while it is served."""

    app: Api
    handler: Handler
    offers: Offers
    reloader: Reloader
    telemetry: Telemetry
    watches: tuple[Callable[[], Coroutine[Any, Any, None]], ...]


def build_server(parts: Parts, stop: anyio.Event, environ: Mapping[str, str]) -> Served:
    """Put the edges in front of an open home."""
    most = max(1, parts.config.server.connections // _A_SHARE)
    health = partial(_health, stop)
    feed = Feed(parts.database, health, lambda: parts.writer.head.seq, most=most)
    parts.approvals.waits.most = most
    telemetry = Telemetry(_readings(parts, feed))
    parts.turned_away = telemetry.turned_away
    right = RightKeys(parts.keys, parts.clock, parts.issuer)
    doors = Doors(clock=parts.clock, quota=quota_of(parts.config), right=right)

    def applied(config: Config) -> None:
        doors.quota = quota_of(config)
        servers.apply(config)
        if parts.peers:
            parts.peers.apply(config)
        logging.getLogger("openfang").setLevel(config.log_level.upper())

    servers = parts.servers or Servers(parts, environ)
    once = parts.once = _once(parts)
    servers.want()
    if parts.agents:
        parts.agents.want(resume=True)
    if parts.queues:
        parts.queues.want()
    if parts.peers:
        parts.peers.want()
    if parts.installs:
        parts.installs.want()
    reloader = Reloader(parts=parts, environ=environ, applied=applied, telemetry=telemetry)
    parts.pipeline.observers = (*parts.pipeline.observers, telemetry)
    node = ServedNode(
        parts=parts,
        stop=stop,
        doors=doors,
        telemetry=telemetry,
        reloader=reloader,
        feed=feed,
        started_at=parts.clock.time_ns(),
    )
    secret = parts.master.derive("mcp-state")
    handler = Handler(secret=secret, clock=parts.clock, node=parts.writer.node)
    offers, talks = Offers(parts), _talks(parts)
    mcp = McpEdge(handler, offers, Sessions(parts.clock, elsewhere=talks), most_streams=most)
    house = NodeHouse(parts)
    a2a = A2aEdge(house)
    openai = OpenAiEdge(HomeShelf(parts), parts.clock.time_ns())
    watches = (
        partial(feed.run, stop),
        partial(_end_waits, parts.approvals, stop),
        partial(_try_again, parts.broker),
        partial(parts.callers.run, parts.database),
        reloader.watch,
        partial(mcp.run, stop),
        partial(a2a.run, stop),
        partial(watch_over, parts, house),
        partial(watch_schedules, parts),
        partial(watch_approvals, parts),
        partial(fold_now_and_then, parts),
        partial(watch_telemetry, parts, telemetry),
        *_shared(parts, doors),
        *([talks.run] if talks else ()),
        *((once.run,) if once else ()),
    )
    return Served(
        app=Api(
            node,
            mounts=(mcp, a2a, openai),
            pages=WebEdge(partial(_watch, parts, environ), parts.clock.time_ns, _browsers(parts)),
            fellows=once.edge if once else None,
        ),
        handler=handler,
        offers=offers,
        reloader=reloader,
        telemetry=telemetry,
        watches=watches,
    )


def _shared(parts: Parts, doors: Doors) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
    """Share the rates with the other nodes, where there can be any."""
    if parts.database.dialect != "postgres":
        return ()
    from openfang.app.cluster.rates import Rates  # noqa: PLC0415 - one node on a file needs none

    limiters = {
        "caller": parts.pipeline.guards.limiter,
        "address": doors.addresses,
        "sign-in": doors.failures,
        "provider": parts.paces,
    }
    storage = cast("PostgresStorage", parts.database)
    return (Rates(storage=storage, clock=parts.clock, limiters=limiters).run,)


def _talks(parts: Parts) -> Talks | None:
    """Make what knows of the sessions of other nodes, where there can be any."""
    if parts.members is None:
        return None
    from openfang.app.cluster.talks import Talks  # noqa: PLC0415 - one node alone needs none

    return Talks(parts, parts.members)


def _browsers(parts: Parts) -> Browsers | None:
    """Make what knows who signed in at other nodes, where there can be any."""
    if parts.members is None:
        return None
    from openfang.app.cluster.browsers import SharedBrowsers  # noqa: PLC0415 - as above

    return SharedBrowsers(parts)


def _once(parts: Parts) -> Singletons | None:
    """Have a part in what only one node has at a time, where there can be others."""
    if parts.members is None:
        return None
    from openfang.app.cluster.singletons import share  # noqa: PLC0415 - one node on a file needs none

    return share(parts, parts.members)


def _watch(parts: Parts, environ: Mapping[str, str]) -> Watch:
    """Make what the page watches by, when the first page is asked for."""
    from openfang.app.web.watching import HomeWatch  # noqa: PLC0415 - nobody may ever look

    return HomeWatch(parts, environ)


def _health(stop: anyio.Event) -> dict[str, str]:
    return {"status": "stopping" if stop.is_set() else "ok"}


async def _end_waits(approvals: Approvals, stop: anyio.Event) -> None:
    """Let nobody who waits for a person hold up the end."""
    await stop.wait()
    approvals.end_waits()


async def _try_again(broker: Broker) -> None:
    """Find out when records can be written again: nobody calls a node that is not ready."""
    while True:
        await anyio.sleep(_TRY_SECONDS)
        if broker.failing:
            await broker.try_again()


def _readings(parts: Parts, feed: Feed) -> Readings:
    return Readings(
        audit_records=lambda: parts.writer.head.seq,
        tools=lambda: len(parts.registry.snapshot.select()),
        calls_in_flight=lambda: parts.broker.in_flight,
        audit_checkpoint_age=partial(_checkpoint_age, parts),
        approvals_pending=lambda: parts.approvals.store.count_pending(parts.clock.time_ns()),
        log_lines_dropped=dropped_lines,
        database_statements=partial(_statements, parts),
        event_listeners=lambda: feed.listeners,
        tasks_of_loop=lambda: len(asyncio.all_tasks()),
        model_requests=lambda: parts.spent.requests,
        model_input_tokens=lambda: parts.spent.input_tokens,
        model_output_tokens=lambda: parts.spent.output_tokens,
        model_cost_usd=lambda: parts.spent.cost_usd,
    )


def _statements(parts: Parts) -> float | None:
    """Count what was sent to a server; a file is sent nothing."""
    if parts.database.dialect != "postgres":
        return None
    reads, writes = cast("PostgresStorage", parts.database), cast("PostgresWriter", parts.writer)
    return reads.statements + writes.statements


async def _checkpoint_age(parts: Parts) -> float | None:
    at = await last_checkpoint(parts.database, parts.writer.node)
    return None if at is None else (parts.clock.time_ns() - at) / 1e9
