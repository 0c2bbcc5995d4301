"""A chain of calls as a picture: where each box, line and bar stands. Templates draw it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass
from openfang.edges.web.words import seconds_between, took

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.watching import SeenCall

MOST: Final = 40
_WIDE, _HIGH = 170, 44
_ACROSS, _DOWN = 241, 60
_PAPER: Final = 1136
_LETTERS: Final = 19
_BARS: Final = 330
_LEFT: Final = 190
_LINE: Final = 22
_TICKS: Final = 4


@dataclass(slots=True)
class Knot:
    """One call in the chain, and what it led to."""

    call: SeenCall
    under: list[Knot] = field(default_factory=list["Knot"])


def tied(chain: Sequence[SeenCall]) -> list[Knot]:
    """Tie calls to those that led to them: one less deep, by whom they were made."""
    knots, roots = list[Knot](), list[Knot]()
    for call in chain[:MOST]:
        knot = Knot(call)
        above = next((one for one in reversed(knots) if _led_to(one.call, call)), None)
        (roots if above is None else above.under).append(knot)
        knots.append(knot)
    return roots


def _led_to(one: SeenCall, other: SeenCall) -> bool:
    return one.depth == other.depth - 1 and one.tool == other.caller


def graph(chain: Sequence[SeenCall], here: str) -> dict[str, Any]:
    """Lay the chain out from left to right: who began it, then what led to what."""
    placing = _Placing(here)
    roots = tied(chain)
    tops = [placing.place(root, 1) for root in roots]
    first = roots[0].call if roots else None
    middle = (tops[0] + tops[-1]) / 2 if tops else 0
    for top, root in zip(tops, roots, strict=True):
        placing.line(0, middle, 1, top, root.call)
    return {
        "width": max(_PAPER, (placing.deepest + 1) * _ACROSS - (_ACROSS - _WIDE) + 4),
        "height": max(1, placing.rows) * _DOWN,
        "start": {"y": middle, "who": first.caller if first else "", "edge": first and first.edge},
        "nodes": placing.nodes,
        "lines": placing.lines,
    }


class _Placing:
    def __init__(self, here: str) -> None:
        self.here = here
        self.rows = 0
        self.deepest = 0
        self.nodes = list[dict[str, Any]]()
        self.lines = list[dict[str, Any]]()

    def place(self, knot: Knot, column: int) -> float:
        """Place a call and all below it; returns how far down it stands."""
        self.deepest = max(self.deepest, column)
        tops = [self.place(one, column + 1) for one in knot.under]
        if not tops:
            self.rows += 1
        top = (tops[0] + tops[-1]) / 2 if tops else (self.rows - 1) * _DOWN + 8.0
        call = knot.call
        self.nodes.append(
            {
                "call": call,
                "x": column * _ACROSS + 1,
                "y": top,
                "word": _short(call.tool),
                "note": f"depth {call.depth} · {took(call.us) or 'did not run'}",
                "here": call.id == self.here,
            }
        )
        for below, one in zip(tops, knot.under, strict=True):
            self.line(column, top, column + 1, below, one.call)
        return top

    def line(self, column: int, top: float, other: int, below: float, call: SeenCall) -> None:
        """Draw how a call came: from box to box, with its protocol on the way."""
        x1, y1 = column * _ACROSS + 1 + _WIDE, top + _HIGH / 2
        x2, y2 = other * _ACROSS - 6, below + _HIGH / 2
        middle = (x1 + x2) / 2
        word = _over(call)
        wide = 12 + 6.4 * len(word)
        self.lines.append(
            {
                "path": f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}",
                "tip": f"M{x2 - 1} {y2 - 4}l8 4-8 4z",
                "kind": call.verdict if call.verdict in {"deny", "ask"} else "",
                "word": word,
                "x": middle,
                "y": (y1 + y2) / 2,
                "wide": wide,
            }
        )


def _over(call: SeenCall) -> str:
    if call.depth > 1:
        kind = call.tool.partition(":")[0]
        return {"mcp": "MCP", "a2a": "A2A"}.get(kind, "agent")
    return {"mcp": "MCP", "a2a": "A2A", "api": "HTTP"}.get(call.edge, call.edge)


def _short(text: str) -> str:
    plain = text.removeprefix("mcp:")
    plain = plain if plain.isprintable() else ascii(plain)[1:-1]
    return plain if len(plain) <= _LETTERS else f"{plain[: _LETTERS - 1]}…"


def waterfall(chain: Sequence[SeenCall], here: str) -> dict[str, Any]:
    """Lay the chain out in time, on one scale."""
    calls = list(chain[:MOST])
    if not calls:
        return {"rows": (), "ticks": (), "height": 0}
    begun = calls[0].at
    starts = [max(0.0, seconds_between(begun, one.at)) for one in calls]
    ends = [start + (one.us or 0) / 1e6 for start, one in zip(starts, calls, strict=True)]
    whole = max(*ends, 1e-6) if ends else 1e-6
    rows = [
        {
            "call": one,
            "y": 18 + number * _LINE,
            "indent": 4 + 14 * (one.depth - 1),
            "x": round(_LEFT + _BARS * start / whole, 2),
            "width": round(max(2.5, _BARS * (one.us or 0) / 1e6 / whole), 2),
            "here": one.id == here,
            "word": _short(one.tool),
            "took": took(one.us) or "did not run",
        }
        for number, (one, start) in enumerate(zip(calls, starts, strict=True))
    ]
    ticks = [
        (_LEFT + _BARS * part / _TICKS, took(round(whole * 1e6 * part / _TICKS)) if part else "0")
        for part in range(_TICKS + 1)
    ]
    return {"rows": rows, "ticks": ticks, "height": 24 + len(rows) * _LINE}


_PARTS: Final = ("Guards, gates, taint", "Waited for a person", "Record", "Execute", "Shape")
_FOLD: Final = 26


def parts_of(steps: Sequence[int], us: int | None) -> list[tuple[str, int]]:
    """Name how long each part of a call took; nothing where its end does not tell."""
    if len(steps) != len(_PARTS) - 1 or us is None:
        return []
    whole = [*steps, max(0, us - steps[2] - steps[3])]
    return [(name, max(0, part)) for name, part in zip(_PARTS, whole, strict=True)]


def stepfall(parts: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Lay the parts of one call out in time, on one scale; waiting for a person is folded."""
    shown = [one for number, one in enumerate(parts) if number != 1 or one[1]]
    folded = len(shown) == len(_PARTS)
    whole = max(1, sum(part for name, part in shown if name != _PARTS[1]))
    room = _BARS - (_FOLD if folded else 0)
    rows, x = list[dict[str, Any]](), float(_LEFT)
    for number, (name, part) in enumerate(shown):
        fold = folded and name == _PARTS[1]
        width = _FOLD if fold else room * part / whole
        bar = {"x": round(x, 2), "width": round(max(2.5, width), 2), "fold": fold}
        rows.append({"name": name, "took": took(part), "y": 4 + number * _LINE, **bar})
        x += width
    return {"rows": rows, "height": 8 + len(rows) * _LINE}
