"""Figures of what happened, minute by minute: read from the log behind the calls, once.

Nobody counts before a page asks: then the newest part of the log is read, later what came since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from openfang.app.web.folding import verdict_of
from openfang.core.bookmarks import ALONE, Bookmark
from openfang.core.events import POLICY_VIOLATION, TOOL_INVOCATION_END
from openfang.core.values import dataclass
from openfang.core.watching import Figures
from openfang.storage.calls import records_in
from openfang.storage.chains import Part, chains, heads_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openfang.storage.chains import Chain
    from openfang.storage.ports import Reader

_AT_FIRST: Final = 15_000
_AT_ONCE: Final = 3_000
_KEPT_MINUTES: Final = 24 * 60
_MOST_CALLERS: Final = 50
_MOST_REASONS: Final = 50
_OTHERS: Final = "others"
_STEPS: Final = 60
_SHOWN: Final = 5
_BOUNDS: Final = tuple(round(10 ** (power / 8)) for power in range(8, 73))
"""Microseconds, eight to a power of ten: a percentile is at most a third off."""


@dataclass(slots=True)
class _Tally:
    """What one caller did in one minute."""

    verdicts: Counter[str] = field(default_factory=Counter[str])
    times: Counter[int] = field(default_factory=Counter[int])
    reasons: Counter[str] = field(default_factory=Counter[str])
    sources: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])

    def add(self, other: _Tally) -> None:
        self.verdicts += other.verdicts
        self.times += other.times
        self.reasons += other.reasons
        for source, times in other.sources.items():
            self.sources.setdefault(source, Counter()).update(times)

    def times_of(self, source: str) -> Counter[int]:
        return self.sources.get(source, Counter()) if source else self.times

    def take(self, record: Mapping[str, Any]) -> None:
        verdict = verdict_of(record)
        self.verdicts[verdict] += 1
        if verdict == "deny":
            reason = str(record.get("reason", ""))
            known = reason in self.reasons or len(self.reasons) < _MOST_REASONS
            self.reasons[reason if known else _OTHERS] += 1
        if isinstance(us := record.get("duration_us"), int):
            place = bisect_left(_BOUNDS, us)
            self.times[place] += 1
            source = str(record.get("tool", "")).rpartition(":")[0]
            self.sources.setdefault(source, Counter())[place] += 1


class Tallies:
    """The tallies of a day, by minute and caller. One at a time reads on."""

    def __init__(self) -> None:
        self._minutes: dict[int, dict[str, _Tally]] = {}
        self._last: Bookmark | None = None
        self._partly = set[str]()
        self._since = 0

    async def read_on(self, reader: Reader) -> None:
        """Take in what was written since; of a long log only the newest part."""
        known = await chains(reader)
        newest = heads_of(known, reader)
        last = self._begin(known) if self._last is None else self._last
        while last.misses(newest):
            news = list(last.behind(newest))
            most = _AT_ONCE // len(news) + 1
            parts = [Part(node, at, min(end, at + most)) for node, at, end in news]
            for record in await records_in(reader, parts):
                self._take(record)
            for part in parts:
                last = last.moved(part.node, part.last)
            self._last = last
        self._last = last
        self._forget()

    def _begin(self, known: Sequence[Chain]) -> Bookmark:
        """Begin with the newest part of each chain; one that ended long ago has nothing to show."""
        day_ago = known[0].at - _KEPT_MINUTES * 60_000_000_000 if known else 0
        firsts = {
            one.node: max(0, one.seq - _AT_FIRST) if one.at >= day_ago else one.seq for one in known
        }
        self._partly = {one.node for one in known if 0 < firsts[one.node] < one.seq}
        return Bookmark(firsts)

    def _take(self, record: Mapping[str, Any]) -> None:
        if self._partly:
            self._note_start(record)
        if record["event_type"] not in {TOOL_INVOCATION_END, POLICY_VIOLATION}:
            return
        minute = _seconds(record) // 60
        of_minute = self._minutes.setdefault(minute, {})
        caller = str(record.get("caller", ""))
        if caller not in of_minute and len(of_minute) >= _MOST_CALLERS:
            caller = _OTHERS
        of_minute.setdefault(caller, _Tally()).take(record)

    def _note_start(self, record: Mapping[str, Any]) -> None:
        """Figures hold since the last one of those chains begins that were not read whole."""
        lane = ALONE if ALONE in self._partly else record["node"]
        if lane in self._partly:
            self._partly.discard(lane)
            self._since = max(self._since, _seconds(record))

    def _forget(self) -> None:
        for minute in sorted(self._minutes)[:-_KEPT_MINUTES]:
            del self._minutes[minute]

    def figures(self, caller: str | None, minutes: int, now: int, source: str = "") -> Figures:
        """Add up the last minutes: of everybody, or of one caller; latencies of one source."""
        last = now // 60_000_000_000
        first = last - minutes + 1
        step = max(1, minutes // _STEPS)
        rows: dict[int, _Tally] = {at: _Tally() for at in range(first, last + 1, step)}
        total = _Tally()
        for minute, of_minute in self._minutes.items():
            if first <= minute <= last:
                row = rows[first + (minute - first) // step * step]
                for tally in _of(of_minute, caller):
                    row.add(tally)
                    total.add(tally)
        times = {at: row.times_of(source) for at, row in rows.items()}
        return Figures(
            minutes=minutes,
            calls=total.verdicts.total(),
            verdicts=total.verdicts,
            p50=_percentile(total.times, 0.5),
            p95=_percentile(total.times, 0.95),
            reasons=total.reasons.most_common(_SHOWN),
            sources={
                name: (times.total(), _percentile(times, 0.95))
                for name, times in total.sources.items()
            },
            rows=[
                (at * 60, row.verdicts, _percentile(times[at], 0.5), _percentile(times[at], 0.95))
                for at, row in rows.items()
            ],
            since=self._since if self._since > first * 60 else 0,
        )


def _of(of_minute: Mapping[str, _Tally], caller: str | None) -> Iterable[_Tally]:
    if caller is None:
        return of_minute.values()
    return [of_minute[caller]] if caller in of_minute else []


def _seconds(record: Mapping[str, Any]) -> int:
    return int(datetime.fromisoformat(record["created_at"]).timestamp())


def _percentile(times: Counter[int], part: float) -> int | None:
    """Find the time that this part of the calls stayed under, in microseconds."""
    wanted, seen = times.total() * part, 0
    for place in sorted(times):
        seen += times[place]
        if seen >= wanted:
            return _BOUNDS[min(place, len(_BOUNDS) - 1)]
    return None
