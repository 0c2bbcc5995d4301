"""The newest part of the audit log as it is shown live: a few fields of each record, not the whole.

A record may hold all arguments of a call. So SQLite takes out what is shown, and what belongs to
other callers never leaves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from openfang.core.bookmarks import ALONE
from openfang.core.events import AuditEvent
from openfang.storage.chains import ORDER, Part, in_time, of_chain, read_so_far, within
from openfang.storage.marks import among

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from openfang.core.bookmarks import Bookmark
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
    """Records as they are shown, and how far the log was read for them."""

    records: Sequence[Mapping[str, Any]]
    end: Bookmark


async def recent(
    reader: Reader,
    after: Bookmark,
    limit: int,
    *,
    caller: str | None = None,
    kinds: Collection[str] = (),
) -> Recent:
    """Read on in the log: so many records of each node, fewer if they are long.

    Where a caller is named only that one's, and beside them events of these kinds.
    """
    after, newest = await read_so_far(reader, after)
    parts = await _parts(reader, after, newest, limit)
    if not parts:
        return Recent((), after)
    where, parameters = within(parts)
    narrow, whose = "", ()
    if caller is not None:
        narrow = f" AND ({CALLER} = ? OR {among('event', kinds)})"
        whose = caller, *kinds
    sql = f"{FROM_LOG}{where}{narrow} {ORDER[reader.dialect]}"
    found = await reader.read(sql, (*parameters, *whose), most=_MOST_CHARACTERS)
    if sum(len(row[7]) + len(row[8]) for row in found) > _MOST_CHARACTERS:
        parts = list(_up_to(parts, found[-1][0], found[-1][1]))
    for part in parts:
        after = after.moved(part.node, part.last)
    return Recent(shown(in_time(found, reader.dialect)), after)


async def _parts(reader: Reader, after: Bookmark, newest: Bookmark, limit: int) -> list[Part]:
    """Find what is new of each chain: so many records, whatever was cut out of it."""
    news = sorted((node, last) for node, last, _ in after.behind(newest))
    each, parameters = list[str](), list[Any]()
    for node, last in news:
        where, names = of_chain(node)
        some = f"SELECT seq FROM audit WHERE {where} AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - marks only
        each.append(f"SELECT MAX(seq) FROM ({some}) AS few")  # noqa: S608 - as above
        parameters += (*names, last, limit)
    if not each:
        return []
    numbered = " UNION ALL ".join(f"SELECT {n} AS n, ({one})" for n, one in enumerate(each))
    ends = await reader.read(f"{numbered} ORDER BY n", parameters)
    found = zip(news, ends, strict=True)
    return [Part(node, last, end or last) for (node, last), (_, end) in found]


def _up_to(parts: Iterable[Part], node: str, number: int) -> Iterator[Part]:
    """Keep what comes up to a record, in the order of the chains."""
    for part in parts:
        if part.node in {ALONE, node}:
            yield part._replace(last=number)
            return
        yield part


def shown(found: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Show rows of `FROM_LOG`."""
    return [_shown(AuditEvent.of(row)) for row in found]  # type: ignore[arg-type]


def _shown(event: AuditEvent) -> dict[str, Any]:
    return {
        "audit_id": event.audit_id,
        "node": event.node,
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


FROM_LOG = (
    "SELECT node, seq, at, event, level, call_id, task_id, "  # noqa: S608 - constants
    f"{_taken('payload', _OF_PAYLOAD)}, {_taken('context', _OF_CONTEXT)}, hash "
    "FROM audit WHERE "
)
CALLER = readable("context", "json_extract(context, '$.caller')", "NULL")
