"""What a span says: calls and questions to models, in the words of the GenAI and MCP conventions.

Only what is small is kept of a call, and it is written when a batch leaves: no call waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from openfang.audit.otlp import pairs
from openfang.core.ids import Kind
from openfang.core.values import value
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from openfang.core.decisions import Verdict
    from openfang.core.tools import Tool

INTERNAL, SERVER, CLIENT = 1, 2, 3
_FINE: Final = '{"code":0}'
_MOST_KNOWN: Final = 10_000
_TOOLS: Final = {Kind.BUILTIN: "function", Kind.EXTENSION: "extension"}
Pair = dict[str, Any]
K = TypeVar("K")
V = TypeVar("V")


@value
class Span:
    """One call, or one question to a model, once it is over. Times are nanoseconds of the day.

    `error` is the rule or the outcome that it ended with, if that was no good one, and `reason`
    what was said of it, which is free of secrets. `more` are further attributes.
    """

    trace: str
    id: str
    parent: str
    began: int
    ended: int
    name: str = ""
    kind: int = INTERNAL
    tool: Tool | None = None
    call: str = ""
    caller: str = ""
    edge: str = ""
    error: str = ""
    reason: str = ""
    verdicts: Sequence[Verdict] = ()
    more: tuple[tuple[str, Any], ...] = ()


class Scribe:
    """Writes spans as JSON. What many of them share is written once, and the rest put around it.

    To make the objects of each span, and then to write them, would take three times as long.
    """

    def __init__(self, node: str) -> None:
        told = {
            "service.name": "openfang",
            "service.version": __version__,
            "service.instance.id": node,
        }
        self.resource = {"attributes": pairs(told)}
        self._tools: dict[str, tuple[Tool, str, str]] = {}
        self._gates: dict[int, tuple[Sequence[Verdict], str]] = {}
        self._edges: dict[tuple[str, str], str] = {}

    def traces(self, spans: Iterable[Span]) -> bytes:
        """Write spans as one `TracesData`."""
        scope = {"name": "openfang", "version": __version__}
        written = orjson.Fragment(f"[{','.join(map(self._span, spans))}]")
        scopes = [{"scope": scope, "spans": written}]
        resources = [{"resource": self.resource, "scopeSpans": scopes}]
        return orjson.dumps({"resourceSpans": resources})

    def _span(self, span: Span) -> str:
        if span.tool is not None:
            name, known = self._of_tool(span.tool)
        else:
            name, known = _text(span.name), ""
        gates = self._of_gates(span.verdicts) if span.verdicts else ""
        more = _inner(pairs(dict(_own(span)))) if span.more or span.error else ""
        call = f'{{"key":"gen_ai.tool.call.id","value":{{"stringValue":"{span.call}"}}}}'
        edge = self._of_edge(span) if span.call else ""
        attributes = ",".join(filter(None, (known, gates, edge and call, edge, more)))
        status = _text({"code": 2, "message": span.reason}) if span.error else _FINE
        return (
            f'{{"traceId":"{span.trace}","spanId":"{span.id}","parentSpanId":"{span.parent}",'
            f'"name":{name},"kind":{span.kind},"startTimeUnixNano":"{span.began}",'
            f'"endTimeUnixNano":"{span.ended}","attributes":[{attributes}],"status":{status}}}'
        )

    def _of_tool(self, tool: Tool) -> tuple[str, str]:
        known = self._tools.get(tool.id)
        if known is None or known[0] is not tool:
            name, told = _described(tool)
            written = tool, _text(name), _inner(told)
            known = _kept(self._tools, tool.id, written)
        return known[1], known[2]

    def _of_gates(self, verdicts: Sequence[Verdict]) -> str:
        """What the gates said; those that all allow are one and the same object every time."""
        known = self._gates.get(id(verdicts))
        if known is None or known[0] is not verdicts:
            said = ((f"openfang.gate.{one.gate}", one.verdict) for one in verdicts)
            known = _kept(self._gates, id(verdicts), (verdicts, _inner(pairs(dict(said)))))
        return known[1]

    def _of_edge(self, span: Span) -> str:
        """Who called, and by which way: few do, and often."""
        known = self._edges.get((span.caller, span.edge))
        if known is None:
            told = {"openfang.caller": span.caller, "openfang.edge": span.edge}
            known = _inner(pairs(told))
            known = _kept(self._edges, (span.caller, span.edge), known)
        return known


def _kept(table: dict[K, V], key: K, written: V) -> V:
    if len(table) >= _MOST_KNOWN:
        table.clear()
    table[key] = written
    return written


def _text(value: object) -> str:
    return orjson.dumps(value).decode()


def _inner(told: list[Pair]) -> str:
    """A list as JSON, without what stands around it."""
    return _text(told)[1:-1]


def _described(tool: Tool) -> tuple[str, list[Pair]]:
    """Say what a call of this tool is called, and what holds for all of them."""
    told: dict[str, Any] = {
        "openfang.tool.id": tool.id,
        "openfang.tool.risk": tool.risk.name,
        "openfang.tool.source": tool.kind.source_type,
    }
    if tool.operation:
        method = tool.id.rpartition(":")[2]
        told |= {"mcp.method.name": method} if tool.kind is Kind.MCP else {}
        return f"{method} {tool.source}", pairs(told)
    if tool.kind in {Kind.AGENT, Kind.A2A}:
        told |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": tool.name}
        return f"invoke_agent {tool.name}", pairs(told)
    told |= {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.type": _TOOLS.get(tool.kind, "extension"),
    }
    if tool.kind is Kind.MCP:
        told |= {"mcp.method.name": "tools/call", "openfang.mcp.server": tool.source}
    return f"execute_tool {tool.name}", pairs(told)


def _own(span: Span) -> Iterator[tuple[str, Any]]:
    """What is this span's own, and rare."""
    yield from span.more
    if span.error:
        yield "error.type", span.error
