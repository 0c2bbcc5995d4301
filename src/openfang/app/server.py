"""What a daemon serves: the node, its edges, and what runs beside them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from openfang.app.build import quota_of
from openfang.app.doors import Doors
from openfang.app.events import Feed
from openfang.app.node import ServedNode
from openfang.app.reload import Reloader
from openfang.app.servers import Servers
from openfang.app.telemetry import Readings, Telemetry
from openfang.edges.api.app import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    import anyio

    from openfang.app.build import Parts
    from openfang.config.models import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The application, and what must run while it is served."""

    app: Api
    reloader: Reloader
    watches: tuple[Callable[[], Coroutine[Any, Any, None]], ...]


def build_server(parts: Parts, stop: anyio.Event, environ: Mapping[str, str]) -> Served:
    """Put the edges in front of an open home."""
    feed = Feed(parts.database, lambda: {"status": "stopping" if stop.is_set() else "ok"})
    telemetry = Telemetry(_readings(parts, feed))
    doors = Doors(clock=parts.clock, quota=quota_of(parts.config))

    def applied(config: Config) -> None:
        doors.quota = quota_of(config)
        servers.apply(config)
        logging.getLogger("openfang").setLevel(config.log_level.upper())

    servers = parts.servers or Servers(parts, environ)
    servers.want()
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
    return Served(
        app=Api(node), reloader=reloader, watches=(partial(feed.run, stop), reloader.watch)
    )


def _readings(parts: Parts, feed: Feed) -> Readings:
    return Readings(
        audit_records=lambda: parts.writer.head.seq,
        tools=lambda: len(parts.registry.snapshot.tools),
        calls_in_flight=lambda: parts.broker.in_flight,
        approvals_pending=lambda: len(parts.approvals.store.pending(parts.clock.time_ns())),
        event_listeners=lambda: feed.listeners,
    )
