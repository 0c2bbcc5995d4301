"""A policy file, in force or not, read for somebody who wants to know what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openfang.config.fields import Folders
from openfang.config.home import find_home, user_home
from openfang.config.load import load
from openfang.config.rulebook import FILE, read_rules
from openfang.core.errors import ConfigError, NotFound
from openfang.core.ids import Kind
from openfang.core.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.problems import Problem
    from openfang.config.rules import Rules


def file_of(named: str | None, environ: Mapping[str, str]) -> Path:
    """Say which file is meant: the one that is named, else the one that the node reads."""
    if named is not None:
        return Path(named).absolute()
    home = find_home(environ)
    configured = load(home, environ).policy.file
    return home.absolute() / FILE if configured is None else Path(configured)


def read(path: Path, environ: Mapping[str, str]) -> Rules | list[Problem]:
    """Read a policy file, or find everything that is wrong with it."""
    folders = Folders(home=find_home(environ).absolute(), user=user_home(environ))
    return read_rules(path, str(path), folders)


def rules_of(named: str | None, environ: Mapping[str, str]) -> Rules:
    """Read the file that is meant; one that is wrong is an error."""
    path = file_of(named, environ)
    if not path.exists():
        way_out = "write one, as docs/policy.md shows, or name another"
        raise NotFound(f"There is no policy file {path}.", way_out=way_out)
    match read(path, environ):
        case list() as problems:
            lines = "\n".join(map(str, problems))
            raise ConfigError(lines, way_out="mend the file, then: openfang policy check")
        case rules:
            return rules


def tool_of(tool_id: str) -> Tool:
    """Make a tool of its id alone: one that the node does not know, or no longer."""
    kind, _, rest = tool_id.partition(":")
    try:
        known = Kind(kind)
    except ValueError:
        way_out = "a canonical id, such as builtin:shell_exec or mcp:SERVER:TOOL"
        raise NotFound(f"There is no tool {tool_id}.", way_out=way_out) from None
    source, _, name = rest.rpartition(":")
    return Tool(id=tool_id, kind=known, source=source or _source(known, name), name=name)


def _source(kind: Kind, name: str) -> str:
    return kind.value if kind is Kind.BUILTIN else name
