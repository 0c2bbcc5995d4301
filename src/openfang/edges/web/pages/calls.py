"""Calls: the newest first, live, with filters in the address."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from openfang.core.bookmarks import read_bookmark
from openfang.core.calls import Role
from openfang.core.watching import CallFilter
from openfang.edges.web.asking import Flow, Page
from openfang.edges.web.live import follow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.edges.web.asking import Ask, Go

VERDICTS: Final = ("allow", "deny", "ask", "failed", "run")
EDGES: Final = ("api", "mcp", "a2a", "openai", "web", "cli")
_AT_ONCE: Final = 50
_LONGEST: Final = 200
_MOST_EXPORTED: Final = 1_000


async def show(ask: Ask) -> Page | Flow | Go:
    """Show the newest calls that match."""
    wanted = wanted_of(ask)
    if ask.query.get("as") == "jsonl":
        return Flow(
            pieces=_exported(ask, wanted), content_type=b"application/x-ndjson", name="calls.jsonl"
        )
    found = await ask.watch.calls(ask.caller, wanted)
    figures = await ask.watch.figures(ask.caller, 24 * 60)
    chosen = {name: text for name, text in ask.query.items() if name in _NAMES and text}
    return Page(
        template="calls.html",
        title="Calls",
        section="calls",
        values={
            "calls": found.calls,
            "older": urlencode({**chosen, "before": found.older}) if found.older else "",
            "live": "" if wanted.before else f"/calls/live?{urlencode(chosen)}",
            "export": urlencode({**chosen, "as": "jsonl"}),
            "wanted": wanted,
            "narrow": bool(chosen),
            "total": figures.calls,
            "partly": bool(figures.since),
            "counts": figures.verdicts,
            "callers": await _callers(ask),
            "sources": sorted(figures.sources),
            "edges": EDGES,
            "verdicts": VERDICTS,
            "several": ask.watch.several,
            "everybody": ask.may(Role.AUDITOR),
        },
    )


_NAMES: Final = ("q", "verdict", "caller", "source", "edge")


def wanted_of(ask: Ask) -> CallFilter:
    """Read the filters from the address."""
    told = {name: ask.query.get(name, "").strip()[:_LONGEST] for name in _NAMES}
    before = ask.query.get("before", "")
    return CallFilter(
        verdict=told["verdict"] if told["verdict"] in VERDICTS else "",
        caller=told["caller"],
        source=told["source"],
        edge=told["edge"],
        text=told["q"],
        before=read_bookmark(before) if before else None,
        limit=_AT_ONCE,
    )


async def _callers(ask: Ask) -> list[str]:
    """Name who can be chosen: agents, and whoever asks."""
    names = {f"agent:{one['name']}" for one in await ask.session.agents()}
    return sorted({*names, ask.caller.id})


async def _exported(ask: Ask, wanted: CallFilter) -> AsyncGenerator[bytes]:
    """Write out so many calls, the newest first."""
    left = _MOST_EXPORTED
    while left > 0:
        page = await ask.watch.calls(ask.caller, wanted)
        for one in page.calls[:left]:
            fields: dict[str, Any] = {name: getattr(one, name) for name in one.__slots__}
            yield json.dumps(fields).encode() + b"\n"
        left -= len(page.calls)
        if not page.older:
            return
        wanted = replace(wanted, before=page.older)


async def live(ask: Ask) -> Flow:
    """Tell of calls as they come."""
    return Flow(pieces=follow(ask, wanted_of(ask)))
