"""The ledger as rows: what was used up by which run in which minute, and by whom on which day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openfang.core.budgets import Whose
from openfang.core.events import TOOL_INVOCATION_START
from openfang.core.usage import DAY_NS, MOST_ROWS, NOTHING, Report, Spending, day_name, first_day
from openfang.core.values import dataclass
from openfang.storage.chains import Part, chains, of_chain, within
from openfang.storage.state import Settings, advance, cursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openfang.core.budgets import Account
    from openfang.core.usage import Entry, UsageQuery
    from openfang.storage.chains import Chain
    from openfang.storage.ports import Reader

Statement = tuple[str, "Sequence[Any]"]
MINUTE_NS: Final = 60_000_000_000
_MINUTES_OF_DAY: Final = 1_440
_AMOUNTS: Final = (
    "requests",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "tool_calls",
    "schema_bytes",
)
_SUMS: Final = ", ".join(f"COALESCE(SUM({name}), 0)" for name in _AMOUNTS)
_WHERE: Final = {Whose.PURSE: "purse = ?", Whose.CALLER: "caller = ?", Whose.NODE: "? = ''"}
_FOLDED: Final = "ledger.folded"
_AT_ONCE: Final = 100_000


def _adding(table: str, *keys: str, unique: str) -> str:
    columns = ", ".join((*keys, *_AMOUNTS))
    marks = ", ".join("?" * (len(keys) + len(_AMOUNTS)))
    sums = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in _AMOUNTS)
    return (
        f"INSERT INTO {table} ({columns}) VALUES ({marks}) "  # noqa: S608 - constants
        f"ON CONFLICT ({unique}) DO UPDATE SET {sums}"
    )


_ADD: Final = _adding(
    "ledger", "run", "minute", "chain", "agent", "purse", "caller", unique="run, minute"
)
_ADD_TO_DAY: Final = _adding(
    "ledger_days", "day", "caller", "agent", "purse", unique="day, caller, agent, purse"
)


def add(entry: Entry | None, now: int) -> tuple[Statement, ...]:
    """Write down what was used up; nothing is not written."""
    if entry is None or entry.spending == NOTHING:
        return ()
    payer, amounts = entry.payer, _amounts(entry.spending)
    whose = payer.chain, payer.agent, payer.purse, payer.caller
    return (
        (_ADD, (payer.run, now // MINUTE_NS, *whose, *amounts)),
        (_ADD_TO_DAY, (now // DAY_NS, payer.caller, payer.agent, payer.purse, *amounts)),
    )


def _amounts(spending: Spending) -> tuple[Any, ...]:
    return (
        spending.requests,
        spending.input_tokens,
        spending.output_tokens,
        spending.cost_usd,
        spending.tool_calls,
        spending.schema_bytes,
    )


def _spending(amounts: Sequence[Any]) -> Spending:
    return Spending(**dict(zip(_AMOUNTS, amounts, strict=True)))


@dataclass(frozen=True, slots=True)
class LedgerStore:
    """Adds up what is written in the ledger."""

    database: Reader

    async def of_run(self, run: str) -> Spending:
        """Everything that one run used up so far."""
        return await self._sum("ledger WHERE run = ?", (run,))

    async def minutes(self, account: Account, first: int) -> list[tuple[int, int, float]]:
        """Tokens and money by the minute from the first on, oldest first."""
        sql = (
            "SELECT minute, SUM(input_tokens + output_tokens), SUM(cost_usd) FROM ledger "  # noqa: S608 - constants
            f"WHERE {_WHERE[account.whose]} AND minute >= ? GROUP BY minute ORDER BY minute"
        )
        return await self.database.read(sql, (account.name, first))  # type: ignore[return-value]

    async def days(self, account: Account, first: int, last: int) -> Spending:
        """Everything on these days together."""
        where = f"{_WHERE[account.whose]} AND day BETWEEN ? AND ?"
        return await self._sum(f"ledger_days WHERE {where}", (account.name, first, last))

    async def _sum(self, rest: str, parameters: Sequence[Any]) -> Spending:
        return _spending((await self.database.read(f"SELECT {_SUMS} FROM {rest}", parameters))[0])  # noqa: S608 - constants

    async def report(self, wanted: UsageQuery, caller: str | None, now: int) -> Report:
        """Add up as is wanted; with `caller` only what was used up for them. Nothing is changed."""
        first = first_day(wanted.since, now)
        rest, parameters = _selected(wanted, caller, first, await chains(self.database))
        group, order = _GROUPED[wanted.by]
        sql = f"SELECT {group}, {_SUMS} FROM {rest} GROUP BY {group} ORDER BY {order} LIMIT ?"  # noqa: S608 - constants
        found = await self.database.read(sql, (*parameters, MOST_ROWS + 1))
        rows = [(_named(wanted.by, row[0]), _spending(row[1:])) for row in found[:MOST_ROWS]]
        more = len(found) > MOST_ROWS
        total = (
            await self._sum(rest, parameters) if more else sum((one for _, one in rows), NOTHING)
        )
        return Report(by=wanted.by, since=day_name(first), rows=rows, total=total, more=more)

    async def unfolded(self) -> Unfolded | None:
        """Count calls that no agent made and that are in the log alone, of one chain that has any.

        Which node does so is all the same.
        """
        for chain in await chains(self.database):
            first = int(await Settings(self.database).get(cursor(_FOLDED, chain.node)) or 0)
            if first < chain.seq:
                part = Part(chain.node, first, min(chain.seq, first + _AT_ONCE))
                where, parameters = within([part])
                counted = f"SELECT day, caller, COUNT(*) FROM ({_CALLS} {where}) AS calls"  # noqa: S608 - marks only
                found = await self.database.read(f"{counted} GROUP BY 1, 2", parameters)
                return Unfolded(part, found)  # type: ignore[arg-type]
        return None


class Unfolded(NamedTuple):
    """Calls of a part of the log: day, caller, how many."""

    part: Part
    calls: Sequence[tuple[int, str, int]]


def fold(found: Unfolded) -> tuple[Statement, ...]:
    """Keep such counts, so that the log is read once. One that comes too late fails as a unit."""
    days = (
        (_ADD_TO_DAY, (day, caller, "", "", *_amounts(Spending(tool_calls=count))))
        for day, caller, count in found.calls
    )
    node, first, last = found.part
    return advance(cursor(_FOLDED, node), first, last), *days


# What somebody made unreadable is nobody's call.
_READABLE: Final = "CASE WHEN json_valid(context) THEN context ELSE '{}' END"
_CALLER: Final = f"json_extract({_READABLE}, '$.caller')"
_CALLS: Final = f"""
    SELECT at / {DAY_NS} AS day, {_CALLER} AS caller FROM audit
    WHERE event = '{TOOL_INVOCATION_START}' AND substr({_CALLER}, 1, 6) <> 'agent:'
      AND substr(json_extract({_READABLE}, '$.tool'), 1, 6) <> 'agent:' AND """  # noqa: S608 - constants
_MARK: Final = (
    "(SELECT COALESCE(MAX(CAST(value AS BIGINT)), 0) FROM settings WHERE settings.name = ?)"
)
_FOLDED_DAYS: Final = f"SELECT day, caller, agent, {', '.join(_AMOUNTS)} FROM ledger_days"  # noqa: S608 - constants
_DEAREST: Final = "SUM(cost_usd) DESC, SUM(input_tokens + output_tokens) DESC, SUM(tool_calls) DESC"
_GROUPED: Final = {
    "agent": ("agent", f"{_DEAREST}, agent"),
    "chain": ("chain", "MAX(minute) DESC, chain"),
    "day": ("day", "day"),
    "key": ("caller", f"{_DEAREST}, caller"),
}


def _all_days(known: Iterable[Chain]) -> tuple[str, list[Any]]:
    """Days as they were folded, and what each chain has beyond that."""
    each, parameters = [_FOLDED_DAYS], list[Any]()
    for chain in known:
        where, names = of_chain(chain.node)
        calls = f"({_CALLS} {where} AND seq > {_MARK}) AS calls"
        each.append(f"SELECT day, caller, '', 0, 0, 0, 0.0, 1, 0 FROM {calls}")  # noqa: S608 - constants
        parameters += (*names, cursor(_FOLDED, chain.node))
    return f"({' UNION ALL '.join(each)}) AS days", parameters


def _selected(
    wanted: UsageQuery, caller: str | None, first: int, known: Iterable[Chain]
) -> tuple[str, list[Any]]:
    """Where to look, under which conditions, and what stands for their marks."""
    by_chain, of_agents = wanted.by == "chain", wanted.by == "agent" or wanted.agent
    table, column = ("ledger", "minute") if by_chain else ("ledger_days", "day")
    parameters = list[Any]()
    if not (by_chain or of_agents):
        table, parameters = _all_days(known)  # with what the log has of calls without an agent
    conditions = [f"{column} >= ?"]
    parameters.append(first * (_MINUTES_OF_DAY if by_chain else 1))
    for condition, value in _narrowed(wanted, caller):
        conditions.append(condition)
        parameters += value
    return f"{table} WHERE {' AND '.join(conditions)}", parameters


def _narrowed(wanted: UsageQuery, caller: str | None) -> Sequence[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    if wanted.agent:
        # One that was started by another is kept under its name and its life.
        found.append(("(agent = ? OR substr(agent, 1, ?) = ?)", _lives(wanted.agent)))
    if wanted.by == "agent":
        found.append(("agent <> ''", []))
    if wanted.key:
        whose = wanted.key if ":" in wanted.key else f"key:{wanted.key}"
        found.append(("caller = ?", [whose]))
    if caller is not None:
        found.append(("caller = ?", [caller]))
    return found


def _lives(agent: str) -> list[Any]:
    return [agent, len(agent) + 1, f"{agent}~"]


def _named(by: str, name: Any) -> str:  # noqa: ANN401 - of a column
    return day_name(name) if by == "day" else str(name)
