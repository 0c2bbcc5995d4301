"""`openfang audit export|prove`, and the check of an export where no home is."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TextIO

from cyclopts import Parameter

from openfang.cli.errors import ERROR, Usage
from openfang.cli.options import STDIN, File, Json
from openfang.cli.output import json_text, note, print_json, say
from openfang.cli.session import on_home
from openfang.core.bookmarks import read_bookmark
from openfang.core.wire import proof_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from openfang.core.bookmarks import Bookmark
    from openfang.core.events import AuditEvent
    from openfang.core.log import Verification
    from openfang.core.session import Session

_LAST: Final = 2**62
_AT_ONCE: Final = 500
_WRITE_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
Form = Literal["jsonl", "cef", "otlp"]


def export(
    file: File = STDIN,
    /,
    *,
    form: Annotated[
        Form, Parameter(name="--format", help="jsonl: JSON lines; cef; otlp: OTLP/JSON logs.")
    ] = "jsonl",
    with_checkpoints: Annotated[
        bool, Parameter(help="All that is hashed and signed: for `audit verify --file`.")
    ] = False,
    after: Annotated[
        str, Parameter(help="Only records after this number, or of several nodes: a:12,b:40.")
    ] = "0",
) -> None:
    """Write the log: as JSON lines, as CEF, or as log records of OpenTelemetry.

    `openfang audit export log.jsonl --with-checkpoints` can be checked on another machine.

    Args:
        file: Where to; `-`, the default, is standard output.
    """
    since = place(after, "--after")
    if with_checkpoints and form != "jsonl":
        raise Usage(
            f"--with-checkpoints does not go with --format {form}.",
            way_out="export twice: a form for other programs has no room for what is hashed",
        )
    count = on_home(lambda session: _export(session, file, since, form, proven=with_checkpoints))
    note(f"{count} records exported")


def place(given: str, option: str) -> Bookmark:
    """Read how far somebody has got in the log."""
    found = read_bookmark(given)
    if found is None:
        raise Usage(f"{option} is {given}.", way_out="the number of a record, or several: a:1,b:2")
    return found


async def _export(session: Session, file: str, after: Bookmark, form: Form, *, proven: bool) -> int:
    async def write(to: TextIO) -> int:
        if proven:
            return await _write_lines(session.export(after), to)
        return await _write_events(session.after(after), to, form)

    if file == STDIN:
        return await write(sys.stdout)
    try:
        with os.fdopen(os.open(Path(file), _WRITE_NEW, 0o600), "w") as opened:
            return await write(opened)
    except OSError as error:
        raise Usage(f"{file} cannot be written: {error.strerror}.", way_out="name a file") from None


async def _write_lines(lines: AsyncIterator[Mapping[str, Any]], to: TextIO) -> int:
    count = 0
    async for line in lines:
        to.write(json_text(line) + "\n")
        count += "record" in line
    to.flush()
    return count


async def _write_events(events: AsyncIterator[AuditEvent], to: TextIO, form: Form) -> int:
    count, waiting = 0, list["AuditEvent"]()
    async for event in events:
        waiting.append(event)
        count += 1
        if len(waiting) == _AT_ONCE:
            to.write(_written(waiting, form))
            waiting.clear()
    to.write(_written(waiting, form))
    to.flush()
    return count


def _written(events: Sequence[AuditEvent], form: Form) -> str:
    if not events:
        return ""
    if form == "otlp":
        from openfang.app.exported import otlp_body  # noqa: PLC0415 - only this form needs it

        return json_text(otlp_body(events)) + "\n"
    if form == "cef":
        from openfang.app.exported import cef_line  # noqa: PLC0415 - only this form needs it

        return "".join(cef_line(event) + "\n" for event in events)
    return "".join(json_text(event.as_json()) + "\n" for event in events)


def prove(record: int, digest: str, /, *, as_json: Json = False) -> int:
    """Say whether the log has the record of a receipt; exits with 1 if not.

    `openfang audit prove 1042 HASH`: both as the result of a call has them, `end` and `hash`.

    Args:
        record: The number of the record.
        digest: Its hash.
    """
    if not 1 <= record <= _LAST or not _DIGEST.fullmatch(digest):
        raise Usage(
            f"{record} {digest[:80]} is no receipt.",
            way_out="its `end`, a number, and its `hash`, 64 hexadecimal digits",
        )
    found = on_home(lambda session: session.prove(record, digest))
    if as_json:
        print_json(proof_body(found))
    else:
        say(found.text)
    return 0 if found.proven else ERROR


def verified(file: str, key: str | None, elsewhere: str | None) -> Verification:
    """Check an export: no home is opened, and nothing is asked of anybody."""
    if key is None:
        raise Usage(
            "An export is checked against the public key of its node.",
            way_out="--key KEY; `openfang audit verify` on the node says it",
        )
    from openfang.app.exported import check_export  # noqa: PLC0415 - only this needs it

    public, points = _key(key), _there(elsewhere) if elsewhere else None
    try:
        return check_export(Path(file), public, points)
    except OSError as error:
        raise Usage(f"{file} cannot be read: {error.strerror}.", way_out="name an export") from None


def _there(file: str) -> Path:
    if not Path(file).is_file():
        raise Usage(f"There is no file {file}.", way_out="name a file of checkpoints")
    return Path(file)


def _key(text: str) -> bytes:
    """Read a key, or the file that it stands in."""
    if not _DIGEST.fullmatch(text):
        try:
            text = Path(text).read_text(errors="replace").strip()[:100]
        except OSError:
            text = ""
    if not _DIGEST.fullmatch(text):
        raise Usage("--key is no public key.", way_out="64 hexadecimal digits, or a file of them")
    return bytes.fromhex(text)
