"""Audit: find records, see that the log is what was written, and take it along."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from openfang.core.bookmarks import Bookmark, read_bookmark
from openfang.core.calls import Role
from openfang.core.log import Search
from openfang.edges.web.asking import Flow, Page

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.core.events import AuditEvent
    from openfang.edges.web.asking import Ask, Go

_NAMES: Final = ("event", "tool", "caller", "call_id", "level", "text")
_WINDOW: Final = 20_000
_LONGEST: Final = 200
_AT_ONCE: Final = 50
_PIECE: Final = 65_536


async def show(ask: Ask) -> Page | Go:
    """Find records; checking the whole log is an act of its own."""
    await ask.came.node.require(ask.caller, Role.AUDITOR)
    told = {name: ask.query.get(name, "").strip()[:_LONGEST] for name in _NAMES}
    log = (await ask.came.node.status(ask.caller))["audit"]
    everything = ask.query.get("all") == "1"
    ends = (await ask.session.heads()).places
    first = Bookmark() if everything else Bookmark({n: _first(end) for n, end in ends.items()})
    chosen = {name: text for name, text in told.items() if text}
    verified = await _verified(ask) if ask.came.method == "POST" else None
    return Page(
        template="audit.html",
        title="Audit",
        section="audit",
        values={
            "records": await _found(ask, Search(**told, after=first, limit=_AT_ONCE)),
            "told": told,
            "log": log,
            "partly": any(first.places.values()),
            "several": ask.watch.several,
            "total": sum(ends.values()),
            "everything": urlencode({**chosen, "all": "1"}),
            "verified": verified,
        },
    )


def _first(end: int) -> int:
    return max(0, end - _WINDOW)


async def _found(ask: Ask, wanted: Search) -> list[AuditEvent]:
    record = ask.query.get("record", "")
    if read_bookmark(record) is not None:
        wanted = Search(record=record)
    return (await ask.session.search(wanted))[::-1]


async def _verified(ask: Ask) -> Any:  # noqa: ANN401 - a verification
    ask.came.node.charge(ask.caller, "message")
    return await ask.session.verify()


async def export(ask: Ask) -> Flow:
    """Take the whole log along, as lines of JSON."""
    await ask.came.node.require(ask.caller, Role.AUDITOR)
    ask.came.node.charge(ask.caller, "message")
    proven = ask.query.get("proven") == "1"
    pieces = _proven(ask) if proven else _plain(ask)
    name = "audit-proven.jsonl" if proven else "audit.jsonl"
    return Flow(pieces=pieces, content_type=b"application/x-ndjson", name=name)


async def _plain(ask: Ask) -> AsyncGenerator[bytes]:
    piece = bytearray()
    async for event in ask.session.after(0):
        piece += json.dumps(event.as_json(), default=str).encode() + b"\n"
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


async def _proven(ask: Ask) -> AsyncGenerator[bytes]:
    async for body in ask.session.export(0):
        yield json.dumps(body, default=str).encode() + b"\n"
