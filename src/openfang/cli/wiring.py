"""The clients on this machine, each wired to this node if that is wanted."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from openfang.app.connect.connecting import survey
from openfang.app.connect.offering import TOOLSET, write_toolset
from openfang.app.daemon.status import reload_config
from openfang.app.home.paths import Home
from openfang.cli.changes import settled
from openfang.cli.connect import Wish, joining
from openfang.cli.imports import our_places
from openfang.cli.output import clean, folded, note, note_command, say
from openfang.config.clients import written_file
from openfang.config.home import find_home
from openfang.core.errors import OpenFangError

if TYPE_CHECKING:
    from openfang.app.connect.connecting import Status
    from openfang.cli.changes import Done
    from openfang.cli.manner import Manner


def wire(manner: Manner) -> list[dict[str, Any]]:
    """Offer to wire each client that is used here; what is wrong with one keeps no other out."""
    found = [
        one
        for one in survey(os.environ, Path.cwd(), our_places())
        if one.here and one.file == written_file(one.form.client, os.environ)
    ]
    if not manner.as_json:
        _show(found, manner)
    wired = [_wired(one, manner) for one in found]
    if any(one["done"] for one in wired) and not manner.as_json:
        note("They still start servers of their own beside it: take those out there, once content.")
    return wired


def _show(found: list[Status], manner: Manner) -> None:
    loose = [one.form.client for one in found if not one.ways and not one.problem]
    wired = [one.form.client for one in found if one.ways]
    if not found:
        note("No client was found that could be wired to this node: openfang connect")
    if wired:
        _list("Wired to this node already", wired)
    if loose and not (manner.asks or manner.yes):
        _list("Not wired to this node", loose)
        note_command("Nothing was written. Do it", "openfang up --yes")


def _list(what: str, clients: list[str]) -> None:
    for line in folded(f"\n{what}: {', '.join(clients)}", sys.stdout):
        say(line)


def _wired(status: Status, manner: Manner) -> dict[str, Any]:
    body: dict[str, Any] = {
        "client": status.form.client,
        "file": str(status.file),
        "wired": bool(status.ways),
        "done": False,
        "problem": status.problem,
    }
    if status.ways or status.problem:
        if status.problem and not manner.as_json:
            note(f"{status.form.client} is left alone: {clean(status.problem)}")
        return body
    try:
        made = _settled(status, manner)
    except OpenFangError as error:
        if not manner.as_json:
            note(f"{status.form.client} is left alone: {clean(error.message)}")
            note(f"way out: {clean(error.way_out)}")
        return {**body, "problem": error.message, "way_out": error.way_out}
    return {**body, **made, "wired": made["done"]}


def _settled(status: Status, manner: Manner) -> dict[str, Any]:
    change = joining(status.form, Wish(toolset=TOOLSET))

    def make() -> Done:
        _offer()
        return change.make()

    whole = replace(change, make=make, command=("openfang", "up"))
    quiet = not (manner.asks or manner.yes)
    if not (quiet or manner.as_json):
        say()
    return settled(whole, replace(manner, as_json=manner.as_json or quiet))


def _offer() -> None:
    """See to it that what the client is wired to is there when it asks."""
    home = Home(find_home(os.environ))
    if write_toolset(home.path, os.environ):
        anyio.run(reload_config, home, os.environ)
