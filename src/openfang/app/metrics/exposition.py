"""What was counted, in the two formats of Prometheus: its own text 0.0.4, and OpenMetrics."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import choose_encoder

from openfang.app.metrics.counts import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from openfang.app.metrics.counts import Snapshot

_OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain"
_PROCESS = ProcessCollector(registry=None)
_BOUNDS = (*map(str, BUCKETS), "+Inf")
_COUNTED = {
    "audit_records": ("openfang_audit_records_total", "Records in the audit log of this node."),
    "log_lines_dropped": (
        "openfang_log_lines_dropped_total",
        "Lines of the log that could not be written.",
    ),
    "database_statements": (
        "openfang_database_statements_total",
        "Statements that the node sent to its Postgres server.",
    ),
    "model_requests": ("openfang_model_requests_total", "Requests to the models of agents."),
    "model_input_tokens": (
        "openfang_model_input_tokens_total",
        "Tokens that the models of agents read.",
    ),
    "model_output_tokens": (
        "openfang_model_output_tokens_total",
        "Tokens that the models of agents wrote.",
    ),
    "model_cost_usd": (
        "openfang_model_cost_usd_total",
        "US dollars that the models of agents cost.",
    ),
}
_MEASURED = {
    "audit_checkpoint_age": (
        "openfang_audit_checkpoint_age_seconds",
        "Time since the last signed checkpoint of the audit log.",
    ),
    "tools": ("openfang_tools", "Tools that the node knows."),
    "calls_in_flight": ("openfang_calls_in_flight", "Calls that have begun and not ended."),
    "approvals_pending": ("openfang_approvals_pending", "Questions that wait for a person."),
    "event_listeners": ("openfang_event_listeners", "Clients that listen to events."),
    "http_connections": ("openfang_http_connections", "Open connections of HTTP clients."),
    "tasks_of_loop": ("openfang_loop_tasks", "What runs side by side in the event loop."),
}


def written(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """Write it as the header `Accept` asks, and name the content type."""
    registry = CollectorRegistry()
    registry.register(_Families(snapshot))
    registry.register(_PROCESS)
    encode, content_type = choose_encoder(_OPENMETRICS if _prefers_openmetrics(accept) else "")
    return encode(registry), content_type


class _Families:
    """A collector over numbers that somebody else counted."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily(
            "openfang_build", "What is running.", {"version": self._snapshot.version}
        )
        yield self._calls()
        yield self._durations()
        yield self._refusals()
        yield self._requests()
        yield from self._readings()
        yield from self._reload()

    def _calls(self) -> Metric:
        family = CounterMetricFamily(
            "openfang_calls_total", "Calls that ran, by how they ended.", labels=("tool", "outcome")
        )
        for count in self._snapshot.tools:
            for outcome, calls in count.outcomes.items():
                family.add_metric((count.tool, outcome), calls)
        return family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            "openfang_call_seconds", "How long calls took.", labels=("tool",)
        )
        for count in self._snapshot.tools:
            up_to = list(zip(_BOUNDS, accumulate(count.buckets), strict=True))
            family.add_metric((count.tool,), up_to, count.seconds)
        return family

    def _refusals(self) -> Metric:
        family = CounterMetricFamily(
            "openfang_refusals_total", "Calls that were refused, by rule.", labels=("rule",)
        )
        for rule, refusals in self._snapshot.refusals.items():
            family.add_metric((rule,), refusals)
        return family

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "openfang_http_requests_total",
            "HTTP requests that were answered.",
            labels=("route", "status"),
        )
        for labels, requests in self._snapshot.requests.items():
            family.add_metric(labels, requests)
        return family

    def _readings(self) -> Iterator[Metric]:
        for reading, value in self._snapshot.readings.items():
            if reading in _COUNTED:
                yield CounterMetricFamily(*_COUNTED[reading], value=value)
            else:
                yield GaugeMetricFamily(*_MEASURED[reading], value=value)

    def _reload(self) -> Iterator[Metric]:
        reload = self._snapshot.reload
        if reload is None:
            return
        yield GaugeMetricFamily(
            "openfang_config_reload_success",
            "Whether the configuration could be loaded when it was last tried.",
            value=float(reload.success),
        )
        yield GaugeMetricFamily(
            "openfang_config_reload_timestamp_seconds",
            "When the configuration in force was loaded.",
            value=reload.in_force_since,
        )


def _prefers_openmetrics(accept: str) -> bool:
    weight = _weight(accept, _OPENMETRICS)
    return weight > 0 and weight >= _weight(accept, _PLAIN)


def _weight(accept: str, kind: str) -> float:
    """How much a media type is wanted: the largest `q` it has in the header."""
    ranges = (part.split(";") for part in accept.lower().split(","))
    return max((_q(rest) for name, *rest in ranges if name.strip() == kind), default=0.0)


def _q(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
