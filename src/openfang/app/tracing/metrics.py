"""Counts as OTLP metrics: what Prometheus would scrape, and the conventions' own histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.app.metrics.counts import BUCKETS
from openfang.audit.otlp import pairs
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openfang.app.metrics.counts import Snapshot, ToolCount

_CUMULATIVE: Final = 2
_COUNTED: Final = frozenset(
    {
        *("audit_records", "log_lines_dropped", "database_statements"),
        *("model_requests", "model_cost_usd"),
    }
)
_TOKENS: Final = {"model_input_tokens": "input", "model_output_tokens": "output"}


def metrics(
    snapshot: Snapshot, resource: dict[str, Any], *, began: int, now: int
) -> dict[str, Any]:
    """Write everything that was counted as one `MetricsData`."""
    times = {"startTimeUnixNano": str(began), "timeUnixNano": str(now)}
    scope = {"name": "openfang", "version": __version__}
    written = [*_counts(snapshot, times), *_readings(snapshot, times)]
    return {
        "resourceMetrics": [
            {"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": written}]}
        ]
    }


def _counts(snapshot: Snapshot, times: dict[str, str]) -> Iterator[dict[str, Any]]:
    if snapshot.tools:
        points = [_histogram(count, times) for count in snapshot.tools]
        yield {
            "name": "gen_ai.execute_tool.duration",
            "unit": "s",
            "description": "How long calls of a tool took.",
            "histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": points},
        }
        outcomes = (
            _point({"gen_ai.tool.name": one.tool, "openfang.outcome": outcome}, number, times)
            for one in snapshot.tools
            for outcome, number in one.outcomes.items()
        )
        yield _sum("openfang.calls", "Calls that ran.", outcomes)
    refused = (_point({"error.type": rule}, n, times) for rule, n in snapshot.refusals.items())
    yield _sum("openfang.refusals", "Calls and requests that were refused.", refused)
    requests = (
        _point({"http.route": route, "http.response.status_code": status}, number, times)
        for (route, status), number in snapshot.requests.items()
    )
    yield _sum("openfang.http.requests", "Requests that were answered.", requests)


def _histogram(count: ToolCount, times: dict[str, str]) -> dict[str, Any]:
    return {
        **times,
        "attributes": pairs({"gen_ai.tool.name": count.tool}),
        "count": str(sum(count.buckets)),
        "sum": count.seconds,
        "explicitBounds": [*BUCKETS],
        "bucketCounts": [str(number) for number in count.buckets],
    }


def _readings(snapshot: Snapshot, times: dict[str, str]) -> Iterator[dict[str, Any]]:
    tokens = [
        _point({"gen_ai.token.type": kind}, snapshot.readings[name], times)
        for name, kind in _TOKENS.items()
        if name in snapshot.readings
    ]
    if tokens:
        yield _sum("openfang.model.tokens", "Tokens that models of agents used.", tokens)
    for name, number in snapshot.readings.items():
        if name in _COUNTED:
            yield _sum(f"openfang.{name}", "", [_point({}, number, times)])
        elif name not in _TOKENS:
            yield {
                "name": f"openfang.{name}",
                "gauge": {"dataPoints": [_point({}, number, times)]},
            }


def _sum(name: str, description: str, points: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "sum": {
            "aggregationTemporality": _CUMULATIVE,
            "isMonotonic": True,
            "dataPoints": [*points],
        },
    }


def _point(attributes: dict[str, str], number: float, times: dict[str, str]) -> dict[str, Any]:
    return {**times, "attributes": pairs(attributes), "asDouble": float(number)}
