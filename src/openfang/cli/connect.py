"""`openfang connect`: our entry in another program's file, shown, backed up, written, undone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import Parameter

from openfang.app.connect.connecting import (
    NAME,
    Planned,
    Seen,
    Status,
    carry_out,
    find_target,
    is_here,
    join,
    own_command,
    own_variables,
    part,
    see,
    survey,
)
from openfang.app.connect.connections import Connections
from openfang.app.connect.importing import own_places
from openfang.app.connect.reaching import bound_to, end_key, keys_in_force, make_key, reached_at
from openfang.app.home.paths import Home
from openfang.cli.changes import Change, Done, settle
from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import clean, is_terminal, note, print_json, table
from openfang.cli.session import on_home
from openfang.config.foreign import valid_name
from openfang.config.forms import Form, find_form
from openfang.config.home import find_home, user_home
from openfang.config.load import load
from openfang.config.models import Config
from openfang.config.show import HIDDEN
from openfang.core.errors import HomeError, NotFound, OpenFangError
from openfang.core.keys import AdminToken, Key
from openfang.core.values import dataclass

_READABLE_BY_OTHERS = 0o044


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is connected, and where that is written."""

    toolset: Annotated[
        str | None, Parameter(help="Offer this toolset: beside the agents, with `--http` alone.")
    ] = None
    agent: Annotated[str | None, Parameter(help="Offer this agent's own tools only.")] = None
    http: Annotated[
        bool, Parameter(help="By the daemon's address and a key of its own, not by a command.")
    ] = False
    project: Annotated[
        bool, Parameter(help="In the file of the project in this folder, not in the user's.")
    ] = False
    name: Annotated[str, Parameter(help="What the entry is called; else `openfang`.")] = NAME

    def typed(self, client: str) -> list[str]:
        """Say the same as a command."""
        name = self.name if self.name != NAME else None
        values = {"--toolset": self.toolset, "--agent": self.agent, "--name": name}
        flags = {"--http": self.http, "--project": self.project}
        return [
            *("openfang", "connect", client),
            *(word for option, value in values.items() if value for word in (option, value)),
            *(option for option, given in flags.items() if given),
        ]


NO_WISH = Wish()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What everything starts from: the home, its configuration, and the file as it is."""

    form: Form
    wish: Wish
    home: Home
    config: Config
    connections: Connections
    seen: Seen

    def undoing(self) -> list[str]:
        """The command to go back by."""
        where = Wish(project=self.wish.project, name=self.wish.name)
        return [*where.typed(self.form.word), "--undo"]

    def joining(self, planned: Planned, make: Callable[[], Done], notes: Sequence[str]) -> Change:
        """Put it all together."""
        return Change(
            planned=planned,
            make=make,
            acts=planned.changes,
            command=self.wish.typed(self.form.word),
            undo=self.undoing(),
            notes=notes,
        )


def connect(
    client: str | None = None,
    /,
    *,
    wish: Wish = NO_WISH,
    undo: Annotated[bool, Parameter(help="Put the file back as it was before.")] = False,
    yes: Annotated[bool, Parameter(help="Do it without asking.")] = False,
    dry_run: Annotated[bool, Parameter(help="Only show the change.")] = False,
    as_json: Json = False,
) -> None:
    """Wire a client to this node: show the change, keep a copy of its file, write.

    `openfang connect cursor --dry-run` only shows it; `--undo` takes it back.

    Where nobody can be asked it is only shown, unless `--yes` is given.

    Args:
        client: cursor, vscode, claude-desktop, claude-code, windsurf, codex, gemini or zed; without
            one all are listed.
    """
    if client is None:
        _list(as_json=as_json)
        return
    form = find_form(client)
    _check(wish, undo=undo)
    ground = _ground(form, wish)
    _require(wish, ground.home, ground.config)
    change = _leaving(ground) if undo else _joining(ground)
    settle(change, yes=yes, dry_run=dry_run, as_json=as_json)


def joining(form: Form, wish: Wish) -> Change:
    """Plan to wire a client; whether there is what is wished for is not asked."""
    return _joining(_ground(form, wish))


def _check(wish: Wish, *, undo: bool) -> None:
    if valid_name(wish.name) != wish.name:
        raise Usage(f"{wish.name!r} is no name for an entry.", way_out="1 to 64 of A-Z a-z 0-9 _ -")
    if wish.toolset and wish.agent:
        raise Usage("Both --toolset and --agent are given.", way_out="give one of them")
    if undo and (wish.http or wish.toolset or wish.agent):
        raise Usage(
            "--undo takes no --http, --toolset or --agent.",
            way_out="openfang connect CLIENT --undo [--project] [--name NAME]",
        )


def _ground(form: Form, wish: Wish) -> _Ground:
    home = Home(find_home(os.environ))
    if not home.exists:
        raise HomeError(f"There is no home at {home.path}.", way_out="openfang init")
    config = load(home.path, os.environ)
    target = find_target(form, os.environ, Path.cwd(), name=wish.name, project=wish.project)
    connections = Connections(home.path)
    seen = see(target, connections, own_places(home.path, config), os.environ)
    return _Ground(
        form=form, wish=wish, home=home, config=config, connections=connections, seen=seen
    )


def _require(wish: Wish, home: Home, config: Config) -> None:
    """Refuse a toolset or an agent that is not there: a client would only show that it fails."""
    if wish.toolset and wish.toolset not in config.toolsets:
        known = ", ".join(config.toolsets) or "write [toolsets.NAME] into config.toml"
        raise NotFound(f"There is no toolset {wish.toolset!r}.", way_out=known)
    if wish.agent and wish.agent not in home.agents():
        raise NotFound(f"There is no agent {wish.agent!r}.", way_out="openfang agents list")


def _joining(ground: _Ground) -> Change:
    if ground.wish.http and ground.form.url:
        return _by_address(ground)
    words = [*own_command(sys.argv[0], sys.executable), "mcp"]
    words += ["--toolset", ground.wish.toolset] if ground.wish.toolset else []
    words += ["--agent", ground.wish.agent] if ground.wish.agent else []
    planned = join(ground.seen, ground.form.command(words, own_variables(os.environ)))
    notes = _unfound(ground, planned)
    if ground.wish.http:
        notes.append(f"{ground.form.client} ignores addresses in its file: it starts a command")
    return ground.joining(planned, lambda: _made(ground, planned), notes)


def _by_address(ground: _Ground) -> Change:
    """Write the daemon's address, with the key that is there already if that is still in force."""
    reached = reached_at(ground.home.path, ground.config)
    url = f"{reached.url}{_path(ground.wish)}"
    secret = _secret_in_use(ground)
    planned = join(ground.seen, ground.form.address(url, secret or HIDDEN))

    def make() -> Done:
        if secret:
            return _made(ground, planned, ground.seen.record.key if ground.seen.record else "")
        return _made_with_key(ground, url)

    notes = [*_unfound(ground, planned), *reached.notes]
    if planned.changes:
        notes += _about_key(ground, new=not secret)
    return ground.joining(planned, make, notes)


def _path(wish: Wish) -> str:
    if wish.agent:
        return f"/mcp/agents/{quote(wish.agent, safe='')}"
    return f"/mcp/{quote(wish.toolset, safe='')}" if wish.toolset else "/mcp"


def _secret_in_use(ground: _Ground) -> str:
    seen = ground.seen
    if not (seen.record and seen.record.key and seen.old):
        return ""
    found = on_home(keys_in_force)
    known = next((key for key in found if key.id == seen.record.key), None)
    return ground.form.secret(seen.old) if known and _fits(known, ground.wish) else ""


def _fits(key: Key | AdminToken, wish: Wish) -> bool:
    """Whether a key opens what is wished, and nothing else."""
    wanted = bound_to(wish.toolset, wish.agent)
    return isinstance(key, Key) and (key.toolsets, key.agents) == wanted


def _about_key(ground: _Ground, *, new: bool) -> list[str]:
    wish = ground.wish
    bound = f"the toolset {wish.toolset}" if wish.toolset else f"the agent {wish.agent}"
    good = f"{bound} over MCP" if wish.toolset or wish.agent else "MCP"
    held, notes = ground.seen.held, [f"a key is made for it, good for {good} alone"] if new else []
    if wish.project:
        notes.append("CAREFUL: a key will stand in a file of the project: do not share it")
    if held.content is not None and held.mode & _READABLE_BY_OTHERS:
        notes.append(f"CAREFUL: others can read the key there: chmod 600 {held.file}")
    return notes


def _unfound(ground: _Ground, planned: Planned) -> list[str]:
    file = ground.seen.target.file
    if ground.wish.project or not planned.changes or is_here(ground.form, file, os.environ):
        return []
    made = "" if file.parent.is_dir() else ": its folder is made"
    return [f"{ground.form.client} was not found here{made}"]


def _made(ground: _Ground, planned: Planned, key: str = "") -> Done:
    """Carry it out; a key that the entry had before and has no longer ends."""
    backup = carry_out(planned, ground.connections, key)
    last = ground.seen.record.key if ground.seen.record else ""
    if last and last != key:
        _end(last)
    return Done(backup=backup)


def _made_with_key(ground: _Ground, url: str) -> Done:
    """Make a key and write it; if that cannot be done, the key ends again."""
    word, wish = ground.form.word, ground.wish
    key, secret = on_home(
        lambda session: make_key(session, word, toolset=wish.toolset, agent=wish.agent)
    )
    try:
        done = _made(ground, join(ground.seen, ground.form.address(url, secret)), key.id)
    except (OpenFangError, OSError):
        _end(key.id)
        raise
    return Done(backup=done.backup, key=key.name)


def _end(key: str) -> None:
    try:
        on_home(lambda session: end_key(session, key))
    except OpenFangError as error:
        note(f"The key {key} is still in force: {clean(error.message)}")
        note(f"End it: openfang keys revoke {key}")


def _leaving(ground: _Ground) -> Change:
    planned = part(ground.seen, ground.connections)
    notes = [planned.note] if planned.note else []
    record = ground.seen.record
    if record and not planned.changes:
        notes.append("the entry is gone already: what was kept for it goes too")
    if record and record.key:
        notes.append("its key ends")
    return Change(
        planned=planned,
        make=lambda: _made(ground, planned),
        acts=planned.changes or record is not None,
        command=ground.undoing(),
        notes=notes,
    )


def _list(*, as_json: bool) -> None:
    home = find_home(os.environ)
    found = survey(os.environ, Path.cwd(), own_places(home, load(home, os.environ)))
    if as_json:
        print_json([_status_body(one) for one in found])
        return
    table(
        ("client", "state", "file"),
        ((one.form.word, _state(one), _short(one.file)) for one in found),
    )
    note("Connect one: openfang connect CLIENT")


def _short(file: Path) -> str:
    """Say a path as people do, to people."""
    user = user_home(os.environ)
    near = is_terminal(sys.stdout) and file.is_relative_to(user)
    return f"~/{file.relative_to(user)}" if near else str(file)


def _state(status: Status) -> str:
    if status.problem:
        return f"cannot be read: {status.problem}"
    if status.ways:
        return "connected: " + ", ".join(f"{name} ({way})" for name, way in status.ways.items())
    return "not connected" if status.here else "not found"


def _status_body(status: Status) -> dict[str, Any]:
    return {
        "client": status.form.client,
        "word": status.form.word,
        "file": str(status.file),
        "found": status.here,
        "connected": dict(status.ways),
        "problem": status.problem,
    }
