"""Figures of what happened, minute by minute: read from the log behind the calls, once.

Nobody counts before a page asks: then the newest part of the log is read, later what came since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from openfang.app.web.folding import verdict_of
from openfang.core.events import POLICY_VIOLATION, TOOL_INVOCATION_END
from openfang.core.watching import Figures
from openfang.storage.calls import newest_record, records_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        self._last = -1
        self._partly = False
        self._since = 0

    async def read_on(self, reader: Reader) -> None:
        """Take in what was written since; of a long log only the newest part."""
        newest = await newest_record(reader)
        if self._last < 0:
            self._last = max(0, newest - _AT_FIRST)
            self._partly = self._last > 0
        while self._last < newest:
            found = await records_after(reader, self._last, _AT_ONCE)
            self._last = min(newest, self._last + _AT_ONCE)
            for record in found:
                self._take(record)
            if self._partly and found and not self._since:
                self._since = _seconds(found[0])
            if found:
                self._last = max(self._last, found[-1]["audit_id"])
        self._forget()

    def _take(self, record: Mapping[str, Any]) -> None:
        if record["event_type"] not in {TOOL_INVOCATION_END, POLICY_VIOLATION}:
            return
        minute = _seconds(record) // 60
        of_minute = self._minutes.setdefault(minute, {})
        caller = str(record.get("caller", ""))
        if caller not in of_minute and len(of_minute) >= _MOST_CALLERS:
            caller = _OTHERS
        of_minute.setdefault(caller, _Tally()).take(record)

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
