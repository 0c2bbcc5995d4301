"""Calls, read back from the audit log for who watches: never more of it than a page can wait for.

The log has no index but its numbers. Ids of calls begin with their time, and so do they in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.bookmarks import ALONE
from openfang.core.events import (
    APPROVAL_ANSWERED,
    APPROVAL_REQUESTED,
    POLICY_DECISION,
    POLICY_VIOLATION,
    TOOL_INVOCATION_END,
    TOOL_INVOCATION_START,
)
from openfang.storage.chains import ORDER, Part, chains, first_since, heads_of, in_time, within
from openfang.storage.marks import among
from openfang.storage.paging import Found, Page
from openfang.storage.recent import CALLER, FROM_LOG, readable, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.bookmarks import Bookmark
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
) -> tuple[list[dict[str, Any]], Bookmark | None]:
    """Read the records of the newest calls that match, and say before which ones older ones stand.

    Only calls of this caller, if one is named.
    """
    where, parameters = _conditions(wanted, caller)
    reach = wanted.limit * _RECORDS_EACH if len(where) == 1 else WINDOW
    page, known = Page(wanted.limit), await chains(reader)
    last = heads_of(known, reader) if wanted.before is None else wanted.before.one_less()
    for chain in known:
        upto = last.of(chain.node)
        if page.full_by(chain.at):
            page.leave(chain.node, upto)
        elif upto > 0:
            part = Part(chain.node, max(0, upto - reach), upto)
            found = await _ids(reader, part, " AND ".join(where), parameters, wanted.limit + 1)
            page.add(part, found)
    for part in page.cut:
        page.end(await _time_behind(reader, part), part.node)
    names = page.taken()
    # A call may have more records than those that were found by: also behind them, or elsewhere.
    reach += _RECORDS_EACH * 10
    wide = [
        Part(one.node, last.of(one.node) - reach, last.of(one.node) + WINDOW)
        for one in known
        if one.at >= page.since
    ]
    within_it, numbers = within(wide)
    kinds = among("event", _KINDS)
    sql = f"{FROM_LOG}{within_it} AND {among('call_id', names)} AND {kinds} {ORDER[reader.dialect]}"
    found = await reader.read(sql, (*numbers, *names, *_KINDS), most=_MOST_CHARACTERS)
    return shown(in_time(found, reader.dialect)), page.older()


async def _ids(
    reader: Reader, part: Part, where: str, parameters: Sequence[object], limit: int
) -> list[Found]:
    inside, numbers = within([part])
    sql = (
        f"SELECT call_id, MAX(seq) AS newest, MAX(at) FROM audit WHERE {inside} AND {where} "  # noqa: S608 - marks only
        "GROUP BY call_id ORDER BY newest DESC LIMIT ?"
    )
    found = await reader.read(sql, (*numbers, *parameters, limit))
    return [Found(at, part.node, number, call) for call, number, at in found]


async def _time_behind(reader: Reader, part: Part) -> int:
    """When the first record of a part was written."""
    inside, numbers = within([part])
    sql = f"SELECT at FROM audit WHERE {inside} ORDER BY seq LIMIT 1"  # noqa: S608 - marks only
    found = await reader.read(sql, numbers)
    return found[0][0] if found else 0


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


async def records_in(reader: Reader, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Read what was written of calls in these parts of the log, in order."""
    where, parameters = within(parts)
    sql = f"{FROM_LOG}{where} AND call_id <> '' {ORDER[reader.dialect]}"
    found = await reader.read(sql, parameters, most=_MOST_CHARACTERS)
    return shown(in_time(found, reader.dialect))


async def records_of(reader: Reader, call_id: str) -> Sequence[LogRow]:
    """Read all records of one call, as far as they stand near its beginning."""
    known, since = await chains(reader), _time_of(call_id) - _EARLIER
    starts = {one.node: await first_since(reader, one, since) for one in known if one.at >= since}
    parts = [Part(node, first - 1, first - 1 + _OF_ONE) for node, first in starts.items()]
    found = await _of_call(reader, parts, call_id)
    if not found:  # the clock may have been set since
        newest = [Part(one.node, one.seq - _OF_ONE - 1, one.seq) for one in known]
        found = await _of_call(reader, newest, call_id)
    return found


async def _of_call(reader: Reader, parts: Sequence[Part], call_id: str) -> Sequence[LogRow]:
    where, parameters = within(parts)
    sql = f"SELECT {_COLUMNS} FROM audit WHERE {where} AND call_id = ? {ORDER[reader.dialect]}"  # noqa: S608 - constants
    found = await reader.read(sql, (*parameters, call_id), most=_MOST_CHARACTERS)
    return in_time(found, reader.dialect)  # type: ignore[return-value]


async def chain_records(reader: Reader, trace: str, of_one: Sequence[LogRow]) -> Sequence[LogRow]:
    """Read what was written of the calls of one chain, around the records of one of them."""
    where, parameters = within(await _around(reader, of_one))
    sql = (
        f"SELECT {_COLUMNS} FROM audit WHERE {where} AND call_id <> '' "  # noqa: S608 - constants
        f"AND instr(context, ?) > 0 {ORDER[reader.dialect]}"
    )
    found = await reader.read(sql, (*parameters, trace), most=_MOST_CHARACTERS)
    return in_time(found, reader.dialect)  # type: ignore[return-value]


async def _around(reader: Reader, of_one: Sequence[LogRow]) -> list[Part]:
    """Find the parts of all chains that were written when this call was."""
    first, parts = of_one[0][2], list[Part]()
    for chain in await chains(reader):
        own = [row[1] for row in of_one if chain.node in {ALONE, row[0]}]
        if own:
            parts.append(Part(chain.node, min(own) - _CHAIN - 1, max(own) + _CHAIN - 1))
        elif chain.at >= first:
            begin = await first_since(reader, chain, first)
            parts.append(Part(chain.node, begin - _CHAIN, begin + _CHAIN))
    return parts


def _time_of(call_id: str) -> int:
    """Read the time that an id begins with, in nanoseconds; of one that is none of ours, none."""
    digits = call_id.partition("_")[2][:12]
    try:
        return int(digits, 16) * 1_000_000
    except ValueError:
        return 0
