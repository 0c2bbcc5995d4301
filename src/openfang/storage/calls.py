"""Calls, read back from the audit log for who watches: never more of it than a page can wait for.

The log has no index but its numbers. Ids of calls begin with their time, and so do they in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.events import (
    APPROVAL_ANSWERED,
    APPROVAL_REQUESTED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_END,
    TOOL_INVOCATION_START,
)
from openfang.storage.marks import among
from openfang.storage.recent import CALLER, FROM_LOG, readable, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.watching import CallFilter
    from openfang.storage.log import LogRow
    from openfang.storage.ports import Reader

WINDOW: Final = 10_000
_OF_ONE: Final = 20_000
_CHAIN: Final = 3_000
_RECORDS_EACH: Final = 5
_MOST_CHARACTERS: Final = 4_000_000
_EARLIER: Final = 200_000_000
_COLUMNS: Final = "node, seq, at, event, level, call_id, task_id, payload, context, hash"
_KINDS: Final = (
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_START,
    TOOL_INVOCATION_END,
    APPROVAL_REQUESTED,
    APPROVAL_ANSWERED,
)
_OUTCOME: Final = readable("payload", "json_extract(payload, '$.outcome')", "''")
_DECISION: Final = readable("payload", "json_extract(payload, '$.decision')", "''")
_TOOL: Final = readable("context", "json_extract(context, '$.tool')", "''")
_EDGE: Final = readable("context", "json_extract(context, '$.edge')", "''")
_OF_VERDICT: Final = {
    "allow": f"event = '{TOOL_INVOCATION_END}' AND {_OUTCOME} = 'ok'",
    "failed": f"event = '{TOOL_INVOCATION_END}' AND {_OUTCOME} NOT IN ('ok', 'cancelled')",
    "none": f"event = '{TOOL_INVOCATION_END}' AND {_OUTCOME} = 'cancelled'",
    "deny": f"event = '{POLICY_VIOLATION}'",
    "ask": f"(event = '{APPROVAL_REQUESTED}' OR event = '{POLICY_DECISION}' "
    f"AND {_DECISION} = 'ask')",
    "run": f"event = '{TOOL_INVOCATION_START}'",
}


async def call_records(
    reader: Reader, wanted: CallFilter, caller: str | None
) -> tuple[list[dict[str, Any]], int]:
    """Read the records of the newest calls that match, and say before which one older ones stand.

    Only calls of this caller, if one is named.
    """
    last = wanted.before or await _last(reader) + 1
    conditions, parameters = _conditions(wanted, caller)
    narrow = len(conditions) > 1
    first = max(1, last - (WINDOW if narrow else wanted.limit * _RECORDS_EACH))
    ids = await _ids(reader, conditions, parameters, (first, last), wanted.limit + 1)
    full = len(ids) > wanted.limit
    kept = ids[: wanted.limit]
    names = [name for name, _ in kept]
    kinds = among("event", _KINDS)
    sql = f"{FROM_LOG} AND {among('call_id', names)} AND {kinds} ORDER BY seq"
    # A call may have more records than those that were found by: also behind them.
    found = await reader.read(
        sql,
        (first - _RECORDS_EACH * 10, last + WINDOW, *names, *_KINDS),
        most=_MOST_CHARACTERS,
    )
    older = kept[-1][1] if full else (first if first > 1 else 0)
    return shown(found), older


async def _ids(
    reader: Reader,
    conditions: Sequence[str],
    parameters: Sequence[object],
    window: tuple[int, int],
    limit: int,
) -> list[tuple[str, int]]:
    where = " AND ".join(conditions)
    sql = (
        f"SELECT call_id, MAX(seq) AS newest FROM audit WHERE seq >= ? AND seq < ? AND {where} "  # noqa: S608 - marks only
        "GROUP BY call_id ORDER BY newest DESC LIMIT ?"
    )
    return await reader.read(sql, (*window, *parameters, limit))  # type: ignore[return-value]


def _conditions(wanted: CallFilter, caller: str | None) -> tuple[list[str], list[object]]:
    conditions, parameters = ["call_id <> ''"], list[object]()
    if wanted.verdict:
        conditions.append(_OF_VERDICT.get(wanted.verdict, "1 = 0"))
    exact = {CALLER: wanted.caller, _EDGE: wanted.edge}
    if caller is not None:
        conditions.append(f"{CALLER} = ?")
        parameters.append(caller)
    for column, text in exact.items():
        if text:
            conditions.append(f"{column} = ?")
            parameters.append(text)
    if wanted.source:
        conditions.append(f"substr({_TOOL}, 1, ?) = ?")
        parameters += [len(wanted.source), wanted.source]
    if wanted.text:
        conditions.append("(instr(context, ?) > 0 OR instr(payload, ?) > 0 OR call_id = ?)")
        parameters += [wanted.text] * 3
    return conditions, parameters


async def records_after(reader: Reader, after: int, limit: int) -> list[dict[str, Any]]:
    """Read what was written of calls behind a record, in order."""
    sql = f"{FROM_LOG} AND call_id <> '' ORDER BY seq"
    found = await reader.read(sql, (after, after + limit), most=_MOST_CHARACTERS)
    return shown(found)


async def newest_record(reader: Reader) -> int:
    """The number of the newest record."""
    return await _last(reader)


async def records_of(reader: Reader, call_id: str) -> list[LogRow]:
    """Read all records of one call, as far as they stand near its beginning."""
    sql = f"SELECT {_COLUMNS} FROM audit WHERE seq >= ? AND seq < ? AND call_id = ? ORDER BY seq"  # noqa: S608 - constants
    first = await _first_since(reader, _time_of(call_id) - _EARLIER)
    found = await reader.read(sql, (first, first + _OF_ONE, call_id), most=_MOST_CHARACTERS)
    if not found:  # the clock may have been set since
        first = await _last(reader) - _OF_ONE
        found = await reader.read(sql, (first, first + _OF_ONE + 1, call_id), most=_MOST_CHARACTERS)
    return found  # type: ignore[return-value]


async def chain_records(reader: Reader, trace: str, near: tuple[int, int]) -> list[LogRow]:
    """Read what was written of the calls of one chain, around some records of it."""
    sql = (
        f"SELECT {_COLUMNS} FROM audit WHERE seq >= ? AND seq < ? AND call_id <> '' "  # noqa: S608 - constants
        "AND instr(context, ?) > 0 ORDER BY seq"
    )
    first, last = near
    window = (first - _CHAIN, max(first, last) + _CHAIN, trace)
    return await reader.read(sql, window, most=_MOST_CHARACTERS)  # type: ignore[return-value]


def _time_of(call_id: str) -> int:
    """Read the time that an id begins with, in nanoseconds; of one that is none of ours, none."""
    digits = call_id.partition("_")[2][:12]
    try:
        return int(digits, 16) * 1_000_000
    except ValueError:
        return 0


async def _last(reader: Reader) -> int:
    return (await reader.read("SELECT COALESCE(MAX(seq), 0) FROM audit"))[0][0]


async def _first_since(reader: Reader, at: int) -> int:
    """Find the first record that is not older, by halving."""
    low, high = 1, await _last(reader) + 1
    while low < high:
        middle = (low + high) // 2
        found = await reader.read(
            "SELECT at FROM audit WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,)
        )
        if found and found[0][0] < at:
            low = middle + 1
        else:
            high = middle
    return low
