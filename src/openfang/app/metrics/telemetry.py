"""What is counted for Prometheus: calls, refusals and requests as they end, a few additions each.

What can be looked up instead is read when somebody scrapes. The library that writes the formats is
imported then too: a start should not pay for it.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeAlias

from anyio import to_thread

from openfang.app.metrics.counts import BUCKETS, Reload, Snapshot, ToolCount
from openfang.core.results import Outcome
from openfang.core.values import dataclass
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.calls import Call
    from openfang.core.errors import CallRefused
    from openfang.core.tools import Tool

Value: TypeAlias = float | None
MAX_TOOLS = 2_000
MAX_RULES = 200
MAX_ROUTES = 200
OTHER = "other"
_LONGEST_LABEL = 200
_STATUSES = range(100, 600)
_log = logging.getLogger("openfang.telemetry")


def _unknown() -> None:
    """A reading that nobody supplies is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What is looked up when somebody scrapes; None means that there is nothing to show now."""

    audit_records: Callable[[], float | None] = _unknown
    audit_checkpoint_age: Callable[[], Value | Awaitable[Value]] = _unknown
    tools: Callable[[], float | None] = _unknown
    calls_in_flight: Callable[[], float | None] = _unknown
    approvals_pending: Callable[[], Value | Awaitable[Value]] = _unknown
    event_listeners: Callable[[], float | None] = _unknown
    http_connections: Callable[[], float | None] = _unknown
    tasks_of_loop: Callable[[], float | None] = _unknown
    log_lines_dropped: Callable[[], float | None] = _unknown
    database_statements: Callable[[], float | None] = _unknown
    model_requests: Callable[[], float | None] = _unknown
    model_input_tokens: Callable[[], float | None] = _unknown
    model_output_tokens: Callable[[], float | None] = _unknown
    model_cost_usd: Callable[[], float | None] = _unknown


class _Labels:
    """The values of one label: at most so many, so that nobody can fill the memory with names."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int) -> None:
        self._known: set[str] = set()
        self._most = most

    def admit(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._most or len(value) > _LONGEST_LABEL or not value.isprintable():
            return OTHER
        self._known.add(value)
        return value


class _Series:
    """The calls of one tool, being counted."""

    __slots__ = ("buckets", "outcomes", "seconds")

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def count(self, tool: str) -> ToolCount:
        outcomes = {outcome.value: count for outcome, count in self.outcomes.items() if count}
        return ToolCount(
            tool=tool, outcomes=outcomes, buckets=tuple(self.buckets), seconds=self.seconds
        )


class Telemetry:
    """An observer of the pipeline that counts. It lives in the event loop, and never waits."""

    __slots__ = (
        "_names",
        "_other",
        "_readings",
        "_refusals",
        "_reload",
        "_requests",
        "_routes",
        "_rules",
        "_tools",
        "_version",
    )

    def __init__(self, readings: Readings, *, version: str = __version__) -> None:
        self._readings = readings
        self._version = version
        self._tools: dict[str, _Series] = {}
        self._other = _Series()
        self._names = _Labels(MAX_TOOLS)
        self._rules = _Labels(MAX_RULES)
        self._routes = _Labels(MAX_ROUTES)
        self._refusals = Counter[str]()
        self._requests = Counter[tuple[str, str]]()
        self._reload: Reload | None = None

    def ended(self, call: Call, tool: Tool, outcome: Outcome, seconds: float) -> None:
        """Count a call that ran. The tool exists: a name that was made up never gets this far."""
        del call
        series = self._tools.get(tool.id) or self._series(tool.id)
        series.outcomes[outcome] += 1
        series.buckets[bisect_left(BUCKETS, seconds)] += 1
        series.seconds += seconds

    def refused(self, call: Call, tool: Tool | None, refusal: CallRefused) -> None:
        """Count a refusal by its rule."""
        del call, tool
        self.turned_away(refusal.rule)

    def turned_away(self, rule: str) -> None:
        """Count somebody who got no further than the door."""
        self._refusals[self._rules.admit(rule)] += 1

    def answered(self, route: str, status: int) -> None:
        """Count an HTTP request. The route is a template, `/api/tools/{id}`, never a path."""
        code = str(status) if status in _STATUSES else OTHER
        self._requests[self._routes.admit(route), code] += 1

    def reads(self, **readings: Callable[[], float | None]) -> None:
        """Take readings that came to be later than this."""
        self._readings = replace(self._readings, **readings)

    def reloaded(self, *, success: bool, at: float) -> None:
        """Note that the configuration was loaded, or could not be and the old one stays."""
        known = self._reload
        since = at if success or known is None else known.in_force_since
        self._reload = Reload(success=success, in_force_since=since)

    async def scrape(self, accept: str) -> tuple[bytes, str]:
        """Write everything in the format that `accept` prefers, and name its content type.

        It is written in a thread: that takes a while if many tools were called.
        """
        return await to_thread.run_sync(_written, await self.snapshot(), accept)

    async def snapshot(self) -> Snapshot:
        """Look everything up."""
        tools = [series.count(tool) for tool, series in self._tools.items()]
        if any(self._other.buckets):
            tools.append(self._other.count(OTHER))
        return Snapshot(
            version=self._version,
            readings=await self._read(),
            tools=tuple(tools),
            refusals=dict(self._refusals),
            requests=dict(self._requests),
            reload=self._reload,
        )

    def _series(self, tool: str) -> _Series:
        if self._names.admit(tool) == OTHER:
            return self._other
        series = self._tools[tool] = _Series()
        return series

    async def _read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        for field in fields(self._readings):
            try:
                read: Value | Awaitable[Value] = getattr(self._readings, field.name)()
                value = await read if isinstance(read, Awaitable) else read
            except Exception:  # noqa: BLE001 - one that fails must not hide the others
                _log.exception("%s cannot be read for the metrics", field.name)
                continue
            if value is not None:
                values[field.name] = value
        return values


def _written(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    from openfang.app.metrics.exposition import written  # noqa: PLC0415 - not before somebody scrapes

    return written(snapshot, accept)
