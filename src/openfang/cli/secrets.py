"""`openfang secrets list|set|remove`: what servers refer to by name. No value is ever shown."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from getpass import getpass
from typing import Annotated, Any

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import STDIN, Json, read_input
from openfang.cli.output import note, print_json, say, table
from openfang.cli.session import on_home

_NAME = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_LONGEST = 32_768


def list_secrets(*, as_json: Json = False) -> None:
    """List the names that are stored, and those that servers miss."""
    found = on_home(lambda session: session.secrets())
    if as_json:
        print_json(found)
    elif not found:
        note("No secret is stored. Store one: openfang secrets set NAME")
    else:
        rows = [(one["name"], _state(one), ", ".join(one["servers"])) for one in found]
        table(("name", "state", "used by"), rows)
        missing = [one["name"] for one in found if not one["stored"]]
        if missing:
            note(f"store what is missing: openfang secrets set {missing[0]}")


def _state(one: Mapping[str, Any]) -> str:
    if not one["stored"]:
        return "missing"
    return "hidden by the environment" if one["in_environment"] else "stored"


def set_secret(name: str, /, *, as_json: Json = False) -> None:
    """Store or replace a secret: its value is read from standard input, or asked for unseen.

    `openfang secrets set GITHUB_TOKEN < token.txt`

    Args:
        name: What servers refer to it by, `${NAME}`, or models: ANTHROPIC_API_KEY and the like.
    """
    _check_name(name)
    value = _value(name)
    found = on_home(lambda session: session.set_secret(name, value))
    if as_json:
        print_json(found)
        return
    say(f"{name} is stored.")
    if found["in_environment"]:
        note(f"The environment of the node has {name} too, and that one is used: unset it there.")
    if found["servers"]:
        note(f"used by: {', '.join(found['servers'])}")
    else:
        note(f"No server refers to it: write ${{{name}}} into env or headers of one.")
        note("If it is a model's key, nothing else is needed: see openfang doctor.")


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        way_out = "letters, digits and _, not beginning with a digit, 128 at most"
        if "=" in name:  # nothing of what may be a secret is shown
            raise Usage("The value of a secret is not given on the command line.", way_out=_ASKED)
        raise Usage(f"{name!r} cannot be the name of a secret.", way_out=way_out)


_ASKED = "openfang secrets set NAME, which asks for it; or pass it on standard input"


def _value(name: str) -> str:
    """Read it where no other program and no history sees it."""
    value = _asked_for(name) if sys.stdin.isatty() else _piped()
    if not value:
        raise Usage("The value is empty.", way_out=_ASKED)
    if "\0" in value or len(value) > _LONGEST:
        raise Usage(f"The value has a NUL, or over {_LONGEST} characters.", way_out=_ASKED)
    return value


def _asked_for(name: str) -> str:
    try:
        return getpass(f"{name} (not shown): ")
    except EOFError:
        sys.stderr.write("\n")  # the prompt's line is still open
        raise Usage("No value was given.", way_out=_ASKED) from None


def _piped() -> str:
    try:
        text = read_input(STDIN).decode()
    except UnicodeDecodeError:
        raise Usage("The value is not UTF-8 text.", way_out="store it as base64") from None
    return text.removesuffix("\n").removesuffix("\r")


def remove(
    name: str,
    /,
    *,
    yes: Annotated[bool, Parameter(help="Also if a server refers to it.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a secret.

    Args:
        name: Its name.
    """
    found = on_home(lambda session: session.remove_secret(name, force=yes))
    if as_json:
        print_json(found)
        return
    say(f"{name} is removed.")
    if found["servers"] and not found["in_environment"]:
        note(f"cannot be reached without it: {', '.join(found['servers'])}")
