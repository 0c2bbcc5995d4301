"""`openfang import`: the MCP servers of other programs."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfang.app.connect.importing import THERE, Planned, own_places, plan
from openfang.cli.errors import ERROR
from openfang.cli.options import Json
from openfang.cli.output import clean, entry, is_terminal, note, print_json, say, table
from openfang.cli.session import on_home
from openfang.config.clients import ClientFile, named_file, read_client, usual_files
from openfang.config.home import find_home
from openfang.config.load import load
from openfang.core.errors import ConfigError, Conflict, Rejected

if TYPE_CHECKING:
    from openfang.config.foreign import Foreign
    from openfang.core.session import Session

NOT_WRITTEN = "not written"


def import_servers(
    file: Annotated[str | None, Parameter(help="Else the usual places are looked at.")] = None,
    /,
    *,
    yes: Annotated[bool, Parameter(help="Do it; else it is only shown.")] = False,
    as_json: Json = False,
) -> int:
    """Take over the MCP servers of other programs; each waits until it is enabled.

    Args:
        file: Such as claude_desktop_config.json, .cursor/mcp.json or ~/.codex/config.toml.
    """
    files = [named_file(Path(file))] if file else usual_files(os.environ, Path.cwd())
    found, unreadable = read_files(files, named=file is not None)
    if file and unreadable:
        raise ConfigError(unreadable[0], way_out="name the file of another program's servers")

    async def work(session: Session) -> list[Planned]:
        configured = (await session.servers())["configured"]
        planned = plan(found, configured, our_places(), await session.secrets())
        return [await taken_over(session, one) for one in planned] if yes else planned

    planned = on_home(work) if found else []
    if as_json:
        print_json(
            {"servers": [one.body() for one in planned], "done": yes, "problems": unreadable}
        )
    else:
        _show(planned, unreadable, file=file, done=yes)
    failed = any(one.skipped.startswith(NOT_WRITTEN) for one in planned)
    return ERROR if failed or (unreadable and not found) else 0


async def taken_over(session: Session, one: Planned) -> Planned:
    """Write one down; what is wrong with it keeps no other out.

    One that was written since we looked is as good as written: somebody was stopped in the middle.
    """
    if one.skipped:
        return one
    try:
        await session.add_server(one.entry)
    except (ConfigError, Conflict, Rejected) as error:
        if not await _is_there(session, one):
            return replace(one, skipped=f"{NOT_WRITTEN}: {error.message}")
    return one


async def _is_there(session: Session, one: Planned) -> bool:
    """Whether this very server stands in the configuration by now."""
    configured = (await session.servers())["configured"]
    (now,) = plan([one.foreign], configured, frozenset())
    return (now.name, now.skipped) == (one.name, THERE)


def read_files(files: list[ClientFile], *, named: bool = False) -> tuple[list[Foreign], list[str]]:
    """Read what can be read; a file that cannot be is told of, and the others go on."""
    found: list[Foreign] = []
    unreadable: list[str] = []
    for file in files:
        try:
            found += read_client(file, os.environ, named=named)
        except ConfigError as error:
            unreadable.append(error.message)
    return found, unreadable


def our_places() -> frozenset[str]:
    """Where this node is reached: an entry that leads there would lead back to us."""
    home = find_home(os.environ)
    return own_places(home, load(home, os.environ))


def _show(planned: list[Planned], unreadable: list[str], *, file: str | None, done: bool) -> None:
    taken = [one for one in planned if not one.skipped]
    if is_terminal(sys.stdout):
        for name, client, _, reached, outcome in _rows(planned):
            entry(name, f"{client}: {reached}" if reached else client, outcome)
    elif planned:
        table(
            ("name", "from", "transport", "command or address", "what becomes of it"),
            _rows(planned),
        )
    for one in taken:
        note(f"{one.name} may {'; '.join(one.body()['may'])}")
    for problem in unreadable:
        note(f"not read: {clean(problem)}")
    if not planned:
        note("No MCP servers of other programs were found.")
    elif not taken:
        note("There is nothing to take over.")
    elif done:
        say(f"{len(taken)} imported. Each waits: openfang servers enable {taken[0].name}")
    else:
        command = shlex.join(("openfang", "import", *((file,) if file else ()), "--yes"))
        note(f"Nothing was changed. Do it: {command}")


def _rows(planned: list[Planned]) -> list[tuple[str, str, str, str, str]]:
    bodies = [one.body() for one in planned]
    return [
        (
            body["name"],
            body["from"],
            body["transport"] or "",
            body["reached_by"],
            _outcome(one),
        )
        for one, body in zip(planned, bodies, strict=True)
    ]


def _outcome(one: Planned) -> str:
    if one.skipped:
        return f"skipped: {one.skipped}"
    count = len(one.secrets)
    stored = f"{count} secret{'s go' if count > 1 else ' goes'} to the secret store"
    return "; ".join(("waits until enabled", *((stored,) if count else ()), *one.notes))
