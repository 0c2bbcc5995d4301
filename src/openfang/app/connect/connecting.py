"""Our entry in another program's file: what would change, the change itself, and the way back.

Whatever is not our entry stays as it is, to the byte. An entry of our name that is not ours is
never touched.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.app.connect.connections import (
    Connection,
    digest,
    digest_of,
    look,
    remove,
    take_away,
    write,
)
from openfang.app.connect.importing import leads_to_us
from openfang.config.clients import ClientFile, around, project_file, written_file
from openfang.config.edit import with_table, without_table
from openfang.config.foreign import translated
from openfang.config.forms import FORMS, HOME
from openfang.config.home import find_home, user_home
from openfang.config.jsonc import JsonProblem, json_spans
from openfang.config.splice import with_member, without_member
from openfang.core.errors import ConfigError, Conflict, OpenFangError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.connect.connections import Connections, Held
    from openfang.config.forms import Form
    from openfang.config.show import Plain

NAME: Final = "openfang"
_BOM: Final = b"\xef\xbb\xbf"
_TOML: Final = ".toml"
_CHANGED: Final = "the file was changed since: only our entry is taken out"
_UNKNOWN: Final = "what the file was before is not known here: only the entry is taken out"
_EARLIER: Final = "the file was changed since: only our entry is made what it was"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One entry of one file of a program."""

    form: Form
    file: Path
    name: str = NAME
    project: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is there now: the file, its text, our entry or one of its name, what we wrote last."""

    target: Target
    held: Held
    text: str
    old: Mapping[str, Any] | None
    ours: bool
    record: Connection | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A file as it would be: without content it goes, without an entry we are not in it."""

    seen: Seen
    after: bytes | None
    entry: Mapping[str, Any] | None = None
    note: str = ""

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.after != self.seen.held.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How one program is connected: the way of each entry of ours, or why that is not known."""

    form: Form
    file: Path
    here: bool
    ways: Mapping[str, str] = field(default_factory=dict[str, str])
    problem: str = ""


def find_target(
    form: Form, environ: Mapping[str, str], folder: Path, *, name: str = NAME, project: bool = False
) -> Target:
    """Find the file that a program reads: the user's, or that of the project in this folder."""
    file = project_file(form.client, folder) if project else written_file(form.client, environ)
    if file is None:
        raise ConfigError(
            f"{form.client} reads no file of a project.", way_out=f"openfang connect {form.word}"
        )
    return Target(form=form, file=file, name=name, project=project)


def own_command(started_as: str, executable: str) -> list[str]:
    """How this very program is started by others: by its full path."""
    script = Path(started_as)
    for program in (script if script.parent.name else None, Path(executable).with_name(NAME)):
        if program and program.stem == NAME and program.is_file() and os.access(program, os.X_OK):
            return [str(program.absolute())]
    return [executable, "-m", NAME]


def own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What our program must be told to find its home; nothing where it looks by itself."""
    home = find_home(environ)
    return {} if home == user_home(environ) / ".openfang" else {HOME: str(home)}


def see(
    target: Target, connections: Connections, own: frozenset[str], environ: Mapping[str, str]
) -> Seen:
    """Look at a file. `own` are the places under which this node is reached."""
    held = look(target.file)
    text = _text(held)
    servers = _servers(target, text)
    old = _fields(servers[target.name]) if target.name in servers else None
    record = connections.find(target.file, target.name)
    known = record is not None and digest_of(old) == record.entry
    ours = known or (old is not None and _is_ours(target, old, own, environ))
    return Seen(target=target, held=held, text=text, old=old, ours=ours, record=record)


def _fields(entry: object) -> dict[str, Any]:
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}


def _is_ours(
    target: Target, fields: Mapping[str, Any], own: frozenset[str], environ: Mapping[str, str]
) -> bool:
    file = ClientFile(target.form.client, target.file)
    return leads_to_us(translated(target.name, fields, around(file, environ)), own)


def _text(held: Held) -> str:
    try:
        return (held.content or b"").removeprefix(_BOM).decode()
    except UnicodeDecodeError:
        raise _wrong(held.file, "expected UTF-8 text, got other bytes") from None


def _servers(target: Target, text: str) -> dict[str, Any]:
    """Read the table that servers stand in, if it is there."""
    data = _toml(target.file, text) if target.file.suffix == _TOML else _json(target.file, text)
    table: object = data.get(target.form.table, {})
    if not isinstance(table, dict):
        raise _wrong(target.file, f"expected {target.form.table} to be a table")
    return cast("dict[str, Any]", table)


def _toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(file, f"not valid TOML: {error}") from None


def _json(file: Path, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        data, _ = json_spans(text)
    except JsonProblem as problem:
        raise _wrong(file, f"not valid JSON: {problem}", problem.line) from None
    if not isinstance(data, dict):
        raise _wrong(file, "expected a table in braces")
    return cast("dict[str, Any]", data)


def _wrong(file: Path, message: str, line: int = 0) -> ConfigError:
    place = f"{file}:{line}" if line else str(file)
    return ConfigError(f"{place}: {message}", way_out="mend the file; nothing was changed")


def join(seen: Seen, entry: Mapping[str, Plain]) -> Planned:
    """Plan to write our entry. What else stands in an older one of ours is kept."""
    _require_ours(seen)
    merged = seen.target.form.merged(entry, seen.old or {})
    if merged == seen.old:
        return Planned(seen=seen, after=seen.held.content, entry=merged)
    return Planned(seen=seen, after=_with(seen, merged), entry=merged)


def part(seen: Seen, connections: Connections) -> Planned:
    """Plan to undo: the file as it was, or, if others wrote to it since, without our entry."""
    record, content = seen.record, seen.held.content
    if record and record.restorable and content is not None and digest(content) == record.after:
        before = connections.copy(record.backup) if record.backup else None
        if before is not None or not record.backup:
            return Planned(seen=seen, after=before)
    if seen.old is None:
        return Planned(seen=seen, after=content)
    _require_ours(seen)
    earlier = _earlier(seen, connections)
    if earlier == seen.old:
        return Planned(seen=seen, after=content)
    if earlier is not None:
        return Planned(seen=seen, after=_with(seen, earlier), note=_EARLIER)
    return Planned(seen=seen, after=_without(seen), note=_CHANGED if record else _UNKNOWN)


def _earlier(seen: Seen, connections: Connections) -> dict[str, Any] | None:
    """Find the entry of that name which stood there before we first wrote."""
    copy = connections.copy(seen.record.backup) if seen.record and seen.record.backup else None
    if copy is None:
        return None
    servers = _servers(seen.target, _text(replace(seen.held, content=copy)))
    return _fields(servers.get(seen.target.name)) or None


def _require_ours(seen: Seen) -> None:
    if seen.old is not None and not seen.ours:
        raise Conflict(
            f"{seen.target.file} has a server {seen.target.name} that is not this program.",
            way_out=f"--name {seen.target.name}-2, or take that one out",
        )


def _with(seen: Seen, entry: Mapping[str, Any]) -> bytes:
    path = (seen.target.form.table, seen.target.name)
    edit = with_table if seen.target.file.suffix == _TOML else with_member
    return _encoded(seen, edit(seen.text, path, dict(entry)))


def _without(seen: Seen) -> bytes:
    path = (seen.target.form.table, seen.target.name)
    edit = without_table if seen.target.file.suffix == _TOML else without_member
    return _encoded(seen, edit(seen.text, path))


def _encoded(seen: Seen, text: str) -> bytes:
    return (_BOM if (seen.held.content or b"").startswith(_BOM) else b"") + text.encode()


def carry_out(planned: Planned, connections: Connections, key: str = "") -> Path | None:
    """Do what is planned, and say where the copy is that was made before.

    `key` is the key of this node that the entry signs in with.
    """
    seen = planned.seen
    with connections.alone():
        if planned.entry is None:
            return _leave(planned, connections)
        if not planned.changes:
            return None
        name = connections.back_up(seen.held, seen.target.form.word)
        connections.remember(seen.target.file, _record(planned, name, key))
        try:
            write(seen.held, planned.after or b"", shared=seen.target.project and not key)
        except OpenFangError:
            _recall(seen, connections)
            raise
    return connections.folder / name if name else None


def _record(planned: Planned, backup: str, key: str) -> Connection:
    """Write down how to go back: as long as only we wrote, to what was before the first time."""
    seen, last = planned.seen, planned.seen.record
    record = Connection(
        client=seen.target.form.client,
        file=str(seen.target.file),
        name=seen.target.name,
        after=digest(planned.after or b""),
        entry=digest_of(planned.entry),
        restorable=True,
        backup=backup,
        key=key,
        made=tuple(map(str, seen.held.missing())),
    )
    if last is None or seen.held.content is None:
        return record
    alone = last.restorable and digest(seen.held.content) == last.after
    return replace(record, restorable=alone, backup=last.backup, made=last.made)


def _recall(seen: Seen, connections: Connections) -> None:
    if seen.record:
        connections.remember(seen.target.file, seen.record)
    else:
        connections.forget(seen.target.file, seen.target.name)


def _leave(planned: Planned, connections: Connections) -> Path | None:
    seen, name = planned.seen, ""
    made = [Path(folder) for folder in seen.record.made] if seen.record else []
    if planned.after is None and seen.held.content is not None:
        remove(seen.held, made)
    elif planned.after is None:
        take_away(made)
    elif planned.changes:
        name = connections.back_up(seen.held, seen.target.form.word) if planned.note else ""
        write(seen.held, planned.after)
    connections.forget(seen.target.file, seen.target.name)
    return connections.folder / name if name else None


def survey(environ: Mapping[str, str], folder: Path, own: frozenset[str]) -> list[Status]:
    """Say of every program where its file is, and whether it is connected."""
    found = [_status(form, written_file(form.client, environ), environ, own) for form in FORMS]
    projects = ((form, project_file(form.client, folder)) for form in FORMS)
    taken = {status.file.resolve() for status in found}
    return [
        *found,
        *(
            _status(form, file, environ, own)
            for form, file in projects
            if file and file.exists() and file.resolve() not in taken
        ),
    ]


def _status(form: Form, file: Path, environ: Mapping[str, str], own: frozenset[str]) -> Status:
    target, here = Target(form=form, file=file), is_here(form, file, environ)
    try:
        servers = _servers(target, _text(look(file)))
    except OpenFangError as error:
        return Status(form=form, file=file, here=here, problem=error.message)
    ways = {
        name: "stdio" if "command" in fields else "http"
        for name, fields in ((name, _fields(entry)) for name, entry in servers.items())
        if _is_ours(target, fields, own, environ)
    }
    return Status(form=form, file=file, here=here, ways=ways)


def is_here(form: Form, file: Path, environ: Mapping[str, str]) -> bool:
    """Whether a program has been used on this machine: it has left its file or its folder."""
    folder = file.parent
    if folder == user_home(environ):
        folder /= f".{form.word.partition('-')[0]}"
    return file.exists() or folder.is_dir()
