"""`openfang audit tail|search|show|verify|sql`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from cyclopts import Parameter

from openfang.cli.errors import ERROR, Usage
from openfang.cli.export import place, verified
from openfang.cli.options import STDIN, File, Json, read_input
from openfang.cli.output import (
    fields,
    is_terminal,
    json_text,
    note,
    one_line,
    paint,
    print_json,
    print_line,
    say,
    table,
)
from openfang.cli.session import on_home
from openfang.core.bookmarks import START
from openfang.core.errors import GuardTripped, NotFound, UnknownTool
from openfang.core.log import QUERY_ROWS, Search
from openfang.core.wire import verification_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from openfang.core.bookmarks import Bookmark
    from openfang.core.events import AuditEvent
    from openfang.core.log import Verification
    from openfang.core.session import Session

_POLL_SECONDS = 0.5
_AT_ONCE = 1_000
_MOST = 10_000
_HEADERS = ("number", "time", "event", "level", "caller", "tool", "what")


def tail(
    *,
    count: Annotated[int, Parameter(name=["--count", "-n"], help="How many; else 20.")] = 20,
    follow: Annotated[bool, Parameter(help="Go on with each new record, until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Show the last records."""
    limit = _limit(count, "--count")

    async def work(session: Session) -> None:
        seen = await session.heads() if follow else START
        found = await session.search(Search(limit=limit))
        show_events(found, as_json=as_json)
        for event in found:
            seen = seen.moved(event.node, max(event.audit_id, seen.of(event.node)))
        if follow:
            await _follow(session, seen, as_json=as_json)

    on_home(work)


async def _follow(session: Session, seen: Bookmark, *, as_json: bool) -> None:
    while True:
        await anyio.sleep(_POLL_SECONDS)
        try:
            async for event in _news(session, seen):
                seen = seen.moved(event.node, event.audit_id)
                _print_live(event, as_json=as_json)
        except GuardTripped as refusal:
            await anyio.sleep(refusal.retry_after or _POLL_SECONDS)


async def _news(session: Session, seen: Bookmark) -> AsyncIterator[AuditEvent]:
    """Read what is new: by a look, which costs a daemon little, unless that is too short."""
    found = await session.search(Search(after=seen, limit=_AT_ONCE))
    if len(found) < _AT_ONCE:
        for event in found:
            yield event
    else:
        async for event in session.after(seen):
            yield event


def _print_live(event: AuditEvent, *, as_json: bool) -> None:
    if as_json:
        print_line(event.as_json())
    else:
        print("  ".join(map(str, _short_row(event))), flush=True)


def search(
    *,
    event: Annotated[str, Parameter(help="The kind of record.")] = "",
    tool: Annotated[str, Parameter(help="The tool, by any of its names.")] = "",
    caller: Annotated[str, Parameter(help="The caller: the name of its key.")] = "",
    call: Annotated[str, Parameter(help="The id of a call.")] = "",
    task: Annotated[str, Parameter(help="The id of a task.")] = "",
    level: Annotated[
        Literal["info", "warning", "error"] | None, Parameter(help="How grave they are.")
    ] = None,
    text: Annotated[str, Parameter(help="Words in what was recorded.")] = "",
    node: Annotated[str, Parameter(help="The node that wrote it, where there are several.")] = "",
    after: Annotated[
        str, Parameter(help="Only records after this number, or of several nodes: a:12,b:40.")
    ] = "0",
    limit: Annotated[int, Parameter(help="The newest so many; else 50.")] = 50,
    as_json: Json = False,
) -> None:
    """Find records; every condition given must hold."""
    most, since = _limit(limit, "--limit"), place(after, "--after")

    async def work(session: Session) -> list[AuditEvent]:
        wanted = Search(
            event=event,
            tool=await _tool_id(session, tool),
            caller=caller if not caller or ":" in caller else f"key:{caller}",
            call_id=call,
            task_id=task,
            level=level or "",
            text=text,
            node=node,
            after=since,
            limit=most,
        )
        return await session.search(wanted)

    show_events(on_home(work), as_json=as_json)


def show(record: str, /, *, as_json: Json = False) -> None:
    """Show one record, whole.

    `openfang audit show 1042`, or where several nodes have that number `openfang audit show b:1042`

    Args:
        record: Its number, or its node and its number there.
    """
    found = on_home(lambda session: session.search(Search(record=record)))
    if not found:
        raise NotFound(f"The log has no record {record[:100]}.", way_out="openfang audit tail")
    event = found[0]
    if as_json:
        print_json(event.as_json())
        return
    fields({name: _told(value) for name, value in event.as_json().items()})


def _told(value: object) -> str:
    return one_line(value if isinstance(value, str) else json_text(value))


def _limit(number: int, option: str) -> int:
    if not 1 <= number <= _MOST:
        raise Usage(f"{option} is {number}.", way_out=f"a number from 1 to {_MOST}")
    return number


async def _tool_id(session: Session, name: str) -> str:
    try:
        return (await session.tool(name))[0].id if name else ""
    except UnknownTool:
        return name


def show_events(events: Sequence[AuditEvent], *, as_json: bool = False) -> None:
    """Print records: a table for people, JSON lines for programs."""
    if as_json:
        for event in events:
            print_line(event.as_json())
    elif events and is_terminal(sys.stdout):
        table(("number", "time", "event", "what"), map(_short_row, events))
    elif events:
        table(_HEADERS, map(_row, events))
    else:
        note("No record matches.")


def _row(event: AuditEvent) -> tuple[object, ...]:
    return (
        event.audit_id,
        event.created_at[:19].replace("T", " "),
        event.event_type,
        event.level,
        one_line(str(event.context.get("caller", ""))),
        one_line(str(event.context.get("tool", ""))),
        one_line(_what(event.payload)),
    )


def _short_row(event: AuditEvent) -> tuple[object, ...]:
    number, time, kind, level, caller, tool, what = map(str, _row(event))
    level = "" if level == "info" else f"{level}:"
    return number, time[5:], kind, " ".join(filter(None, (level, caller, tool, what)))


def _what(payload: Any) -> str:  # noqa: ANN401 - any JSON
    """The words of a record that say most."""
    words = [
        str(payload[key])
        for key in ("outcome", "decision", "state", "act", "server", "name", "raw")
        if payload.get(key)
    ]
    if "arguments" in payload:
        words.append(json_text(payload["arguments"])[:200])
    if payload.get("reason"):
        words.append(str(payload["reason"]))
    return ": ".join(words)


def verify(
    *,
    file: Annotated[
        str | None, Parameter(help="An export made --with-checkpoints; no home is needed.")
    ] = None,
    key: Annotated[
        str | None, Parameter(help="The node's public key, for --file: as it is, or in a file.")
    ] = None,
    checkpoints: Annotated[
        str | None, Parameter(help="Checkpoints that were kept elsewhere, for --file.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check the whole log against its hashes and signed checkpoints; exits with 1 if they differ.

    Edits, gaps, insertions, swaps, changed times, a cut tail and a rewrite are found; with `--file`
    in an export, on any machine: `openfang audit verify --file log.jsonl --key KEY`
    """
    if file is None and (key or checkpoints):
        raise Usage("--key and --checkpoints are for an export.", way_out="name it with --file")
    found = (
        on_home(lambda session: session.verify())
        if file is None
        else verified(file, key, checkpoints)
    )
    if as_json:
        print_json(verification_body(found))
    else:
        show_verification(found)
    return 0 if found.intact else ERROR


def show_verification(found: Verification) -> None:
    """Print what was read, and each place that does not fit."""
    heads = ", ".join(f"{node} at {seq}" for node, seq in found.heads.items())
    counted = {"records": found.records, "checkpoints": found.checkpoints}
    fields({**counted, "heads": heads or "none", "key": found.key})
    if found.findings:
        rows = ((f.kind, f.node, f.seq, f.text) for f in found.findings)
        table(("finding", "node", "record", "what"), rows)
    word = (
        paint("intact", "green", sys.stdout)
        if found.intact
        else paint("NOT intact", "red", sys.stdout)
    )
    say(f"The audit log is {word}.")


def sql(query: File, /, *, as_json: Json = False) -> None:
    """Run queries that only read, for example on the view `task_audits`.

    `openfang audit sql "SELECT event_type, count(*) FROM task_audits GROUP BY event_type"`

    Args:
        query: The query, or several with semicolons; `-` reads them from standard input.
    """
    text = read_input(STDIN).decode(errors="replace") if query == STDIN else query
    found = on_home(lambda session: session.sql(text))
    if as_json:
        bodies = [[dict(zip(names, row, strict=True)) for row in rows] for names, rows in found]
        print_json(bodies[0] if len(bodies) == 1 else bodies)
        return
    for names, rows in found:
        if names:
            table(names, rows)
            note("1 row" if len(rows) == 1 else f"{len(rows)} rows")
        if len(rows) == QUERY_ROWS:
            note(f"only the first {QUERY_ROWS} rows are shown; add a LIMIT and an OFFSET")
