"""The newest part of the audit log as it is shown live: a few fields of each record, not the whole.

A record may hold all arguments of a call. So SQLite takes out what is shown, and what belongs to
other callers never leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from openfang.core.events import AuditEvent
from openfang.storage.marks import among

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from openfang.storage.ports import Reader

_OF_PAYLOAD = (
    "outcome",
    "decision",
    "rule",
    "reason",
    "duration_us",
    "labels",
    "state",
    "name",
    "event",
    "payload",
    "question",
    "scope",
    "answered_by",
    "via",
)
_OF_CONTEXT = ("caller", "tool", "edge", "trace", "depth")
_MOST_CHARACTERS = 1_000_000


class Recent(NamedTuple):
    """Records as they are shown, and the number up to which the log was read for them."""

    records: Sequence[Mapping[str, Any]]
    end: int


async def recent(
    reader: Reader,
    after: int,
    limit: int,
    *,
    caller: str | None = None,
    kinds: Collection[str] = (),
) -> Recent:
    """Read on in the log: so many records, fewer if they are long.

    Where a caller is named only that one's, and beside them events of these kinds.
    """
    end = (await reader.read(_END, (after, limit)))[0][0]
    if end is None:
        return Recent((), after)
    whose = () if caller is None else (caller, *kinds)
    sql = _SHOWN if caller is None else _shown_to_one(kinds)
    found = await reader.read(sql, (after, end, *whose), most=_MOST_CHARACTERS)
    if sum(len(row[7]) + len(row[8]) for row in found) > _MOST_CHARACTERS:
        end = found[-1][1]
    return Recent(shown(found), end)


def shown(found: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Show rows of `FROM_LOG`."""
    return [_shown(AuditEvent.of(row)) for row in found]  # type: ignore[arg-type]


def _shown(event: AuditEvent) -> dict[str, Any]:
    return {
        "audit_id": event.audit_id,
        "event_type": event.event_type,
        "level": event.level,
        "created_at": event.created_at,
        "call_id": event.call_id,
        "task_id": event.task_id,
        **_named(_OF_CONTEXT, event.context),
        **_named(_OF_PAYLOAD, event.payload),
    }


def _named(names: Sequence[str], column: Mapping[str, Any]) -> dict[str, Any]:
    values: Sequence[Any] = column.get("values", ())
    return {name: value for name, value in zip(names, values, strict=False) if value is not None}


def readable(column: str, value: str, otherwise: str) -> str:
    """Let nothing that somebody wrote into the file keep the rest from being read."""
    readable = f"typeof({column}) = 'text' AND json_valid({column})"
    return f"CASE WHEN {readable} THEN {value} ELSE {otherwise} END"


def _taken(column: str, names: Sequence[str]) -> str:
    paths = ", ".join(f"'$.{name}'" for name in names)
    values = f"""'{{"values":' || json_extract({column}, {paths}) || '}}'"""
    return readable(column, values, "'{}'")


_END = "SELECT MAX(seq) FROM (SELECT seq FROM audit WHERE seq > ? ORDER BY seq LIMIT ?)"
FROM_LOG = (
    "SELECT node, seq, at, event, level, call_id, task_id, "  # noqa: S608 - constants
    f"{_taken('payload', _OF_PAYLOAD)}, {_taken('context', _OF_CONTEXT)}, hash "
    "FROM audit WHERE seq > ? AND seq <= ?"
)
CALLER = readable("context", "json_extract(context, '$.caller')", "NULL")
_SHOWN = f"{FROM_LOG} ORDER BY seq"


def _shown_to_one(kinds: Collection[str]) -> str:
    return f"{FROM_LOG} AND ({CALLER} = ? OR {among('event', kinds)}) ORDER BY seq"
