"""`openfang servers held|accept`: what waits for a person, and why."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from shlex import quote
from typing import Annotated, Any

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import clean, folded, note, note_command, one_line, paint, print_json, say
from openfang.cli.session import on_home

_SET_IN = 4
_COLOURS = {"+": "green", "-": "red"}
_HEAD = 2
_DIGEST = re.compile("[0-9a-f]{64}")


def list_held(name: str = "", /, *, as_json: Json = False) -> None:
    """Show what is held back of what servers and agents say of themselves, and why.

    Args:
        name: Only of this server or agent.
    """
    found = on_home(lambda session: session.held(name))
    if as_json:
        print_json(found)
        return
    for one in found:
        say(f"{paint(clean(one['id']), 'bold', sys.stdout)}  {one['reason']}")
        for line in reasons(one):
            say(line)
        command = f"openfang servers accept {quote(one['id'])} --digest {one['digest']}"
        note_command("accept it", command)
    if not found:
        note("Nothing is held back.")


def accept_held(
    identity: str,
    /,
    *,
    digest: Annotated[
        str, Parameter(help="Only if it is still this: `servers held` shows the digest.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Take what is held back as it is now.

    Args:
        identity: Its id, as `servers held` shows it.
    """
    if digest and not _DIGEST.fullmatch(digest):
        raise Usage(f"{digest} is no digest.", way_out="openfang servers held shows it")
    found = on_home(lambda session: session.accept(identity, digest))
    if as_json:
        print_json(found)
    else:
        say(f"{clean(found['id'])} is accepted as it is now.")


def reasons(held: Mapping[str, Any]) -> list[str]:
    """Say what changed, part by part, and what was found, so that all of it is seen."""
    changed = [line for change in held["changes"] for line in _change(change)]
    return [*changed, *(line for one in held["findings"] for line in _finding(one))]


def _change(change: Mapping[str, Any]) -> Sequence[str]:
    lines = [f"  {one_line(change['path'])}"]
    before, after = (_lines(change[key]) for key in ("before", "after"))
    told = list(unified_diff(before, after, lineterm="", n=0))[_HEAD:]
    lines += [_coloured(line) for line in told if not line.startswith("@")]
    return [*lines, *(f"    hidden: {clean(one)}" for one in change["hidden"])]


def _coloured(line: str) -> str:
    return f"    {paint(clean(line), _COLOURS.get(line[:1], 'dim'), sys.stdout)}"


def _lines(text: str | None) -> list[str]:
    return [] if text is None else text.split("\n")


def _finding(finding: Mapping[str, Any]) -> Sequence[str]:
    grave = "serious" if finding["serious"] else "mild"
    where = f" in {one_line(finding['place'])}" if finding["place"] else ""
    said = one_line(finding["excerpt"])
    text = f"it {finding['meaning']} ({finding['code']}{where}): {said}"
    first, *rest = folded(text, sys.stdout, beside=len(grave) + _SET_IN)
    shown = f"  {paint(grave, 'yellow', sys.stdout)}: {first}"
    return [shown, *(f"{'':<{len(grave) + _SET_IN}}{line}" for line in rest)]
