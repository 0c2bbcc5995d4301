"""The operator's own queries of the log on Postgres: nothing else is read, nothing is changed.

A transaction that only reads keeps them from changing anything. That alone still lets them read
keys and memories, and call what acts on the server itself. So the functions that a query names are
those of a list, and its tables are taken from the server's own plan, which knows what stands behind
a view.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.storage.queries import QUERY_BYTES, QUERY_SECONDS, not_run, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openfang.core.log import Table


def _names(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


_READABLE: Final = frozenset({"audit", "checkpoints"})
_QUIET: Final = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CALLED: Final = re.compile(r'(?:"((?:[^"]|"")+)"|([A-Za-z_\u0080-\uffff][\w$]*))\s*\(')
_UNREAD: Final = re.compile(r"\$|\bU&[\"']|\be'", re.IGNORECASE)
_WORDS: Final = _names("""
    all and any array as between by case cast distinct else except exists extract filter from
    group having in intersect is join lateral left like ilike limit materialized not offset on
    or order over partition range recursive row rows select set sets similar some then to union
    using values when where window with within
""")
_FUNCTIONS: Final = _names("""
    abs array_agg array_length array_to_string avg bit_length bool_and bool_or btrim ceil
    ceiling char_length coalesce concat concat_ws count cume_dist date date_bin date_part
    date_trunc decode dense_rank div encode every first_value floor format generate_series
    greatest grouping initcap interval json_array_elements json_array_length json_build_array
    json_build_object json_each json_each_text json_extract json_extract_path
    json_extract_path_text json_object_keys json_typeof jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each
    jsonb_each_text jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_object_keys
    jsonb_path_exists jsonb_path_query jsonb_path_query_first jsonb_pretty jsonb_typeof lag
    last_value lead least left length ln log lower lpad ltrim make_date make_interval
    make_timestamptz max md5 min mod now nth_value ntile nullif numeric octet_length ordinality
    overlay percent_rank percentile_cont percentile_disc position power rank regexp_match
    regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right round
    row_number rpad rtrim sha256 sign split_part sqrt starts_with stddev string_agg
    string_to_array strpos substr substring sum timestamp timestamptz to_char to_date to_json
    to_jsonb to_number to_timestamp translate trim trunc unnest upper varchar variance
    width_bucket
""")


async def query(connection: Any, sql: str, limit: int) -> list[Table]:  # noqa: ANN401 - the driver has no types
    """Run them one after the other, each within its bounds."""
    found = list["Table"]()
    for one in statements(sql):
        text = one.strip().rstrip(";")
        _only_known_functions(text)
        await connection.execute("BEGIN TRANSACTION READ ONLY")
        try:
            await connection.execute(f"SET LOCAL statement_timeout = '{QUERY_SECONDS:.0f}s'")
            found.append(await _table(connection, text, limit))
        except Exception as error:
            if connection.is_closed() or not hasattr(error, "sqlstate"):
                raise
            raise not_run(str(error).partition("\n")[0].rstrip(".")) from error
        finally:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
    return found


def _only_known_functions(sql: str) -> None:
    """Refuse what is not known to only look at what it is given."""
    text = _QUIET.sub("''", sql)
    if _UNREAD.search(text):
        raise not_run("it quotes in a way that is not read here")
    for quoted, plain in _CALLED.findall(text):
        name = quoted or plain.lower()
        if name not in _FUNCTIONS and (quoted or name not in _WORDS):
            raise not_run(f"the function {name} is not among those that may be used")


async def _table(connection: Any, sql: str, limit: int) -> Table:  # noqa: ANN401 - as above
    plan = await connection.fetchval(f"EXPLAIN (VERBOSE, FORMAT JSON) {sql}")
    for table in _tables(orjson.loads(plan)):
        if table not in _READABLE:
            raise not_run(f"access to {table} is prohibited")
    prepared = await connection.prepare(sql)
    names = [column.name for column in prepared.get_attributes()]
    cursor, rows, size = await prepared.cursor(), list["Sequence[Any]"](), 0
    while len(rows) < limit and (some := await cursor.fetch(min(100, limit - len(rows)))):
        for row in some:
            values = tuple(map(_plain, row))
            size += sum(len(value) for value in values if isinstance(value, str | bytes))
            if size > QUERY_BYTES:
                raise not_run(f"its answer has more than {QUERY_BYTES} bytes")
            rows.append(values)
    return names, rows


def _tables(plan: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Name every table that a plan reads."""
    if isinstance(plan, dict):
        found = cast("dict[str, Any]", plan)
        if "Relation Name" in found:
            yield str(found["Relation Name"])
        plan = list(found.values())
    if isinstance(plan, list):
        for inner in cast("list[Any]", plan):
            yield from _tables(inner)


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any type that the server has
    """Show what JSON and a terminal can show: a time as text, as SQLite's view has it."""
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
