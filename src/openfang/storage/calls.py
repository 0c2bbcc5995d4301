"""Calls, read back from the audit log for who watches: never more of it than a page can wait for.

The log has no index but its numbers. Ids of calls begin with their time, and so do they in the log.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from openfang.core.events import (
    APPROVAL_ANSWERED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_END,
    TOOL_INVOCATION_START,
)
from openfang.storage.database import BUSY_SECONDS, Database
from openfang.storage.recent import CALLER, FROM_LOG, readable, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from openfang.core.watching import CallFilter
    from openfang.storage.log import LogRow

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
    "ask": f"event = '{POLICY_DECISION}' AND {_DECISION} = 'ask'",
    "run": f"event = '{TOOL_INVOCATION_START}'",
}


def call_records(
    path: Path, wanted: CallFilter, caller: str | None
) -> tuple[list[dict[str, Any]], int]:
    """Read the records of the newest calls that match, and say before which one older ones stand.

    Only calls of this caller, if one is named.
    """
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        last = wanted.before or _last(database) + 1
        conditions, parameters = _conditions(wanted, caller)
        narrow = len(conditions) > 1
        first = max(1, last - (WINDOW if narrow else wanted.limit * _RECORDS_EACH))
        ids = _ids(database, conditions, parameters, (first, last), wanted.limit + 1)
        full = len(ids) > wanted.limit
        kept = ids[: wanted.limit]
        sql = (
            f"{FROM_LOG} AND call_id IN (SELECT value FROM json_each(?)) "  # noqa: S608 - constants
            "AND event IN (SELECT value FROM json_each(?)) ORDER BY seq"
        )
        names = json.dumps([name for name, _ in kept])
        # A call may have more records than those that were found by: also behind them.
        found = database.read_now(
            sql,
            (first - _RECORDS_EACH * 10, last + WINDOW, names, json.dumps(_KINDS)),
            most=_MOST_CHARACTERS,
        )
    older = kept[-1][1] if full else (first if first > 1 else 0)
    return shown(found), older


def _ids(
    database: Database,
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
    return database.read_now(sql, (*window, *parameters, limit))  # type: ignore[return-value]


def _conditions(wanted: CallFilter, caller: str | None) -> tuple[list[str], list[object]]:
    conditions, parameters = ["call_id <> ''"], list[object]()
    if wanted.verdict:
        conditions.append(_OF_VERDICT.get(wanted.verdict, "0"))
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
        conditions.append("(instr(context, ?) OR instr(payload, ?) OR call_id = ?)")
        parameters += [wanted.text] * 3
    return conditions, parameters


def records_after(path: Path, after: int, limit: int) -> list[dict[str, Any]]:
    """Read what was written of calls behind a record, in order."""
    sql = f"{FROM_LOG} AND call_id <> '' ORDER BY seq"
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        found = database.read_now(sql, (after, after + limit), most=_MOST_CHARACTERS)
    return shown(found)


def newest_record(path: Path) -> int:
    """The number of the newest record."""
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        return _last(database)


def records_of(path: Path, call_id: str) -> list[LogRow]:
    """Read all records of one call, as far as they stand near its beginning."""
    sql = f"SELECT {_COLUMNS} FROM audit WHERE seq >= ? AND seq < ? AND call_id = ? ORDER BY seq"  # noqa: S608 - constants
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        first = _first_since(database, _time_of(call_id) - _EARLIER)
        found = database.read_now(sql, (first, first + _OF_ONE, call_id), most=_MOST_CHARACTERS)
        if not found:  # the clock may have been set since
            first = _last(database) - _OF_ONE
            found = database.read_now(
                sql, (first, first + _OF_ONE + 1, call_id), most=_MOST_CHARACTERS
            )
        return found  # type: ignore[return-value]


def chain_records(path: Path, trace: str, near: tuple[int, int]) -> list[LogRow]:
    """Read what was written of the calls of one chain, around some records of it."""
    sql = (
        f"SELECT {_COLUMNS} FROM audit WHERE seq >= ? AND seq < ? AND call_id <> '' "  # noqa: S608 - constants
        "AND instr(context, ?) ORDER BY seq"
    )
    first, last = near
    with closing(Database(path, patience=BUSY_SECONDS)) as database:
        window = (first - _CHAIN, max(first, last) + _CHAIN, trace)
        return database.read_now(sql, window, most=_MOST_CHARACTERS)  # type: ignore[return-value]


def _time_of(call_id: str) -> int:
    """Read the time that an id begins with, in nanoseconds; of one that is none of ours, none."""
    digits = call_id.partition("_")[2][:12]
    try:
        return int(digits, 16) * 1_000_000
    except ValueError:
        return 0


def _last(database: Database) -> int:
    return database.read_now("SELECT COALESCE(MAX(seq), 0) FROM audit")[0][0]


def _first_since(database: Database, at: int) -> int:
    """Find the first record that is not older, by halving."""
    low, high = 1, _last(database) + 1
    while low < high:
        middle = (low + high) // 2
        found = database.read_now(
            "SELECT at FROM audit WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,)
        )
        if found and found[0][0] < at:
            low = middle + 1
        else:
            high = middle
    return low
