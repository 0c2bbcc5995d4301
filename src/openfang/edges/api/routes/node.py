"""`/api/health`, `/api/status`, `/api/config`, `/api/events`, `/metrics`: how the node is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.bookmarks import read_bookmark
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint, Text
from openfang.edges.api.exchange import Answer, Stream, json_answer, secret_of
from openfang.edges.api.node import EDGE
from openfang.edges.api.staying import still_of_one
from openfang.version import __version__

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Asked
    from openfang.edges.api.staying import Still

_HEALTHY = json_answer({"status": "ok"})
_READY = "ready"
_NOT_READY = 503
_VERSION = json_answer({"name": "openfang", "version": __version__})


async def _health(asked: Asked) -> Answer:
    del asked
    return _HEALTHY


async def _ready(asked: Asked) -> Answer:
    state = asked.node.state
    return json_answer({"status": state}, 200 if state == _READY else _NOT_READY)


async def _version(asked: Asked) -> Answer:
    del asked
    return _VERSION


async def _status(asked: Asked) -> Answer:
    return json_answer(await asked.node.status(asked.caller))


async def _config(asked: Asked) -> Answer:
    return json_answer(asked.node.config())


async def _reload(asked: Asked) -> Answer:
    return json_answer(await asked.node.reload())


async def _metrics(asked: Asked) -> Answer:
    accept = asked.headers.get(b"accept", b"").decode("latin-1")
    body, content_type = await asked.node.metrics(accept)
    return Answer(body=body, content_type=content_type.encode())


async def _events(asked: Asked) -> Stream:
    after = read_bookmark(asked.headers.get(b"last-event-id", b"").decode("latin-1"))
    pieces = asked.node.events(asked.caller, after, still_of(asked))
    return Stream(pieces=pieces, content_type=b"text/event-stream")


def still_of(asked: Asked) -> Still:
    """What says whether who asked would be let in again."""
    return still_of_one(asked.node, asked.caller, secret_of(asked.headers), EDGE)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/health",
        name="health",
        summary="Whether the process answers.",
        handle=_health,
        access=Access.PUBLIC,
        answers={200: "State"},
    ),
    Endpoint(
        method="GET",
        path="/api/ready",
        name="ready",
        summary="Whether calls are taken.",
        handle=_ready,
        access=Access.PUBLIC,
        answers={200: "State", 503: "State"},
    ),
    Endpoint(
        method="GET",
        path="/api/version",
        name="version",
        summary="Which version this is.",
        handle=_version,
        answers={200: "Version"},
    ),
    Endpoint(
        method="GET",
        path="/api/status",
        name="status",
        summary="How the node is; details for auditors and administrators.",
        handle=_status,
        answers={200: "Status"},
    ),
    Endpoint(
        method="GET",
        path="/api/config",
        name="show_config",
        summary="The configuration in force, without what is secret.",
        handle=_config,
        access=Access.AUDITOR,
        answers={200: "Config"},
        problems=(403,),
    ),
    Endpoint(
        method="POST",
        path="/api/config/reload",
        name="reload_config",
        summary="Read the configuration anew; a bad one leaves the old one in force.",
        handle=_reload,
        access=Access.ADMIN,
        body=schemas.NOTHING,
        answers={200: "Reloaded"},
        problems=(403, 422),
    ),
    Endpoint(
        method="GET",
        path="/api/events",
        name="events",
        summary="What happens, live: one's own calls, or everybody's for who may read the log.",
        handle=_events,
        headers={
            "Last-Event-ID": "The last id that was seen, at any node: nothing later is missed."
        },
        answers={200: Text("text/event-stream", schemas.EVENT)},
        problems=(429,),
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        name="metrics",
        summary="Counters for Prometheus.",
        handle=_metrics,
        access=Access.AUDITOR,
        answers={200: Text("text/plain")},
        problems=(403,),
    ),
)
