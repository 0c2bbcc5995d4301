"""Overview: what needs a person, then how the node is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.keys import QuestionFilter
from openfang.core.usage import UsageQuery
from openfang.edges.web.asking import Page
from openfang.edges.web.words import calls as of
from openfang.edges.web.words import lasting, number, took

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.keys import Question
    from openfang.core.watching import Figures
    from openfang.edges.web.asking import Ask

RANGES: Final = {"15m": (15, "15 min"), "1h": (60, "1 h"), "24h": (1440, "24 h")}
_USUAL: Final = "1h"
_FIRST: Final = QuestionFilter(limit=3)
_SECOND: Final = 1_000_000_000
_TODAY: Final = UsageQuery(since="0d")
_MOST_HELD: Final = 3


async def show(ask: Ask) -> Page:
    """Show how the node is."""
    chosen = ask.query.get("r", _USUAL)
    chosen = chosen if chosen in RANGES else _USUAL
    figures = await ask.watch.figures(ask.caller, RANGES[chosen][0])
    servers = await servers_shown(ask, figures)
    status = await ask.came.node.status(ask.caller)
    return Page(
        template="overview.html",
        title="Overview",
        section="",
        values={
            "all": ask.may(Role.AUDITOR),
            "ranges": [(key, word) for key, (_, word) in RANGES.items()],
            "range": chosen,
            "todo": await _todo(ask, servers),
            "stats": await _stats(ask, figures, RANGES[chosen][1]),
            "charts": charts(figures),
            "servers": servers,
            "reasons": figures.reasons,
            "denied": figures.verdicts.get("deny", 0),
            "audit": _audit(status),
            "nodes": await ask.watch.nodes(ask.caller),
        },
    )


def _audit(status: Mapping[str, Any]) -> dict[str, Any] | None:
    found = status.get("audit")
    return found and {"records": found["records"], "head": found["hash"], "checkpoint": None}


async def _todo(ask: Ask, servers: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    questions = (await ask.session.questions(_FIRST)).questions
    now = ask.came.node.now()
    held = await ask.session.held() if ask.may(Role.AUDITOR) else ()
    return [
        *(_question(one, now) for one in questions),
        *(_held(one) for one in held[:_MOST_HELD]),
        *(_unwell(one) for one in servers if one["health"] == "unhealthy"),
    ]


def _question(question: Question, now: int) -> dict[str, str]:
    left = lasting(max(0, question.expires_at - now) / _SECOND)
    return {
        "kind": "ask",
        "word": "Waiting",
        "text": f"{question.caller} asks to call {question.tool}",
        "note": f"denied if not answered in {left}",
        "href": f"/approvals/{question.id}",
        "act": "Answer",
    }


def _held(held: Mapping[str, Any]) -> dict[str, str]:
    return {
        "kind": "ask",
        "word": "Held back",
        "text": f"{held.get('id', held['name'])}: {held.get('reason', 'it changed')}",
        "note": "not offered until it is accepted",
        "href": f"/servers/{held['source']}",
        "act": "See the diff",
    }


def _unwell(server: Mapping[str, Any]) -> dict[str, str]:
    return {
        "kind": "failed",
        "word": "Unhealthy",
        "text": f"{server['name']}: {server['error'] or 'it does not answer'}",
        "note": "",
        "href": f"/servers/{server['name']}",
        "act": "Open log",
    }


async def _stats(ask: Ask, figures: Figures, span: str) -> list[dict[str, str]]:
    calls, verdicts = figures.calls, figures.verdicts
    denied, failed = verdicts.get("deny", 0), verdicts.get("failed", 0)
    waiting = (await ask.session.questions(_FIRST)).total
    spent = (await ask.session.usage(_TODAY)).total
    covered = _covered(figures, ask.came.node.now())
    when = f"since {_clock(figures.since)} UTC" if figures.since else f"in {span}"
    return [
        _stat("Calls", f"{calls / covered:.1f}", "/s", f"{number(calls)} {when}"),
        _stat("Latency, p95", *_apart(figures.p95), f"half under {took(figures.p50) or 'nothing'}"),
        _stat("Denied", _share(denied, calls), "%", f"{of(denied)} did not run"),
        _stat("Failed", _share(failed, calls), "%", f"{of(failed)} ran and broke"),
        _stat("Waiting", number(waiting), "", "for a person's answer"),
        _stat("Model cost today", f"${spent.cost_usd:.2f}", "", f"{number(spent.tokens)} tokens"),
    ]


def _covered(figures: Figures, now: int) -> float:
    """How many seconds the figures are about."""
    return max(60.0, now / _SECOND - figures.since) if figures.since else figures.minutes * 60


def _stat(name: str, value: str, unit: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "unit": unit, "note": note}


def _apart(us: int | None) -> tuple[str, str]:
    value, _, unit = took(us).partition(" ")
    return (value or "0", unit)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0"


async def servers_shown(ask: Ask, figures: Figures) -> list[dict[str, Any]]:
    """Show the servers as a list has them, with what figures say of their calls."""
    body = await ask.session.servers()
    counts = {one["name"]: one["tools_count"] for one in body["connected"]}
    calls = max(1, sum(count for count, _ in figures.sources.values()))
    return [_server(one, counts, figures, calls) for one in body["configured"]]


def _server(
    server: Mapping[str, Any], tools: Mapping[str, int], figures: Figures, calls: int
) -> dict[str, Any]:
    name = server["name"]
    count, p95 = figures.sources.get(f"mcp:{name}", (0, None))
    return {
        "name": name,
        "health": server.get("health") or server.get("state", "disabled"),
        "transport": server.get("transport", {}).get("type", ""),
        "tools": tools.get(name, 0),
        "p95": p95,
        "share": round(100 * count / calls),
        "error": server.get("last_error") or "",
    }


def charts(figures: Figures) -> list[dict[str, Any]]:
    """Draw traffic, latency, and what did not pass on a scale of its own."""
    rows = [(at, _clock(at), verdicts) for at, verdicts, _, _ in figures.rows]
    denied, failed = figures.verdicts.get("deny", 0), figures.verdicts.get("failed", 0)
    return [
        {
            "id": "traffic",
            "title": "Calls",
            "kind": "area",
            "fmt": "int",
            "series": [{"cls": "p1", "name": "calls", "now": number(figures.calls)}],
            "rows": [(at, word, [sum(found.values())]) for at, word, found in rows],
        },
        latency(figures),
        {
            "id": "stopped",
            "title": "Did not pass",
            "kind": "stack",
            "fmt": "int",
            "series": [
                {"cls": "deny", "name": "Denied", "now": number(denied)},
                {"cls": "failed", "name": "Failed", "now": number(failed)},
            ],
            "rows": [
                (at, word, [found.get("deny", 0), found.get("failed", 0)])
                for at, word, found in rows
            ],
        },
    ]


def latency(figures: Figures) -> dict[str, Any]:
    """Draw how long calls took."""
    return {
        "id": "latency",
        "title": "Latency",
        "kind": "line",
        "fmt": "ms",
        "series": [
            {"cls": "p1", "name": "p50", "now": took(figures.p50)},
            {"cls": "p2", "name": "p95", "now": took(figures.p95)},
        ],
        "rows": [(at, _clock(at), [_ms(p50), _ms(p95)]) for at, _, p50, p95 in figures.rows],
    }


def _ms(us: int | None) -> float:
    return 0 if us is None else round(us / 1000, 1)


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")
