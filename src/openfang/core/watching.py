"""Calls as somebody who watches the node sees them, read back from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.bookmarks import Bookmark
    from openfang.core.events import AuditEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """Which calls are wanted, the newest first; an empty field matches all.

    `source` is the beginning of a tool's id, `before` are the records at which the page before
    ended.
    """

    verdict: str = ""
    caller: str = ""
    source: str = ""
    edge: str = ""
    text: str = ""
    before: Bookmark | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A call as far as it has come.

    `verdict` is `allow`, `deny`, `ask`, `failed`, `run` or `none` (cancelled, or answered without
    having run since). `audit` is its newest record, `keeper` the node that wrote that, `node` the
    one that the call was made on, `us` how long it took.
    """

    id: str
    at: str
    verdict: str
    tool: str
    caller: str
    reason: str = ""
    rule: str = ""
    edge: str = ""
    depth: int = 1
    trace: str = ""
    labels: tuple[str, ...] = ()
    outcome: str = ""
    us: int | None = None
    audit: int = 0
    keeper: str = ""
    node: str = ""
    ancestors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPage:
    """Some calls, and the records before which older ones stand; none if all was looked at."""

    calls: Sequence[SeenCall]
    older: Bookmark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStory:
    """All that the log has of one call, and the calls of its chain, the first one first."""

    call: SeenCall
    records: Sequence[AuditEvent]
    chain: Sequence[SeenCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What happened in some minutes: sums, and one row for each step of time.

    A row is the time in seconds since 1970, then calls by verdict, then the latencies p50 and p95
    in microseconds. Of a long log the oldest part was not read: they hold `since` then, in seconds
    since 1970.
    """

    minutes: int
    calls: int
    verdicts: Mapping[str, int]
    p50: int | None
    p95: int | None
    reasons: Sequence[tuple[str, int]]
    sources: Mapping[str, tuple[int, int | None]]
    rows: Sequence[tuple[int, Mapping[str, int], int | None, int | None]]
    since: int = 0
