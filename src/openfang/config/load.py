"""From files to a `Config`: read, join, validate; every problem of every file at once.

What depends on the world (a variable, a program, an address) is not looked at here.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from openfang.config.documents import Document, read_document
from openfang.config.fields import Folders, Section
from openfang.config.home import user_home
from openfang.config.merge import Merged, frozen
from openfang.config.models import Config, Place
from openfang.config.problems import Problem
from openfang.config.rulebook import FILE as RULES
from openfang.config.rulebook import read_rules
from openfang.config.validate import validated
from openfang.config.whole import distinct_servers, settled, unknown_servers
from openfang.core.errors import ConfigError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from openfang.config.lines import Key
    from openfang.config.servers import McpServer

FILE = "config.toml"
_YAML = frozenset({".yaml", ".yml"})
_SUFFIXES = _YAML | {".toml"}
_Model = TypeVar("_Model", bound=Section)


def load(
    home: Path, environ: Mapping[str, str], *, instead: Mapping[Path, Path] | None = None
) -> Config:
    """Load `config.toml` and what it includes; a missing file means the defaults.

    `instead` names files to read in the place of others: what they would become.
    """
    reading = _read(home, environ, instead)
    if reading.config is None or reading.problems:
        lines = "\n".join(str(problem) for problem in reading.ordered())
        raise ConfigError(lines, way_out="mend the file, then: openfang config check")
    return reading.config


def files(home: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Name every file that `load` reads, or would read if it were there."""
    reading = _read(home, environ)
    return (home.absolute() / FILE, *(home.absolute() / name for name in reading.files))


def check(home: Path, environ: Mapping[str, str]) -> tuple[Problem, ...]:
    """Find everything that would stop a start, without starting."""
    from openfang.config.manifests import check_manifests  # noqa: PLC0415 - only a check reads them

    reading = _read(home, environ)
    roots = reading.config.agents.workspace_roots if reading.config else ()
    return (*reading.ordered(), *check_manifests(home, roots))


@dataclass(slots=True)
class _Reading:
    folders: Folders
    instead: Mapping[Path, Path] = field(default_factory=dict["Path", "Path"])
    merged: Merged = field(default_factory=Merged)
    servers: list[tuple[McpServer, Place]] = field(default_factory=list["tuple[McpServer, Place]"])
    files: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])
    config: Config | None = None

    def ordered(self) -> list[Problem]:
        """Order the problems as the files were read, each from top to bottom."""
        rank = {name: number for number, name in enumerate(self.files)}
        return sorted(self.problems, key=lambda p: (rank.get(p.place.file, -1), p.place.line))

    def open(self, path: Path) -> Document | None:
        """Read one file, or note why not."""
        name = self.shown(path)
        self.files.append(name)
        match read_document(self.instead.get(path, path), name):
            case Problem() as problem:
                self.problems.append(problem)
                return None
            case document:
                return document

    def shown(self, path: Path) -> str:
        inside = path.is_relative_to(self.folders.home)
        return str(path.relative_to(self.folders.home) if inside else path)

    def validated(
        self,
        model: type[_Model],
        data: Mapping[str, Any],
        place: Callable[[Key], Place],
        naming: str,
    ) -> _Model | None:
        """Validate, or note each error where it stands."""
        match validated(model, data, place, self.folders, naming):
            case list() as problems:
                self.problems += problems
                return None
            case valid:
                return valid


def _read(
    home: Path, environ: Mapping[str, str], instead: Mapping[Path, Path] | None = None
) -> _Reading:
    home = home.absolute()
    reading = _Reading(Folders(home=home, user=user_home(environ)), instead or {})
    main = home / FILE
    if not _absent(reading.instead.get(main, main)):
        _read_files(reading, main)
    _override(reading.merged, environ)
    # An empty table is validated, and so the default of a path in it counts from the home as well.
    reading.merged.data.setdefault("audit", {})
    reading.problems += reading.merged.problems
    config = reading.validated(Config, reading.merged.data, reading.merged.place, "name")
    if config is not None:
        _finish(reading, config)
    return reading


def _read_files(reading: _Reading, main: Path) -> None:
    document = reading.open(main)
    if document is None:
        return
    reading.merged.add(document)
    seen = {main.resolve()}
    for number, path in _includes(reading, document):
        if not _is_file(path) or path.suffix not in _SUFFIXES:
            what = f"expected an existing .toml or .yaml file, got {path}"
            place = document.place(("include", number))
            reading.problems.append(Problem(place, f"include[{number}]", what))
        elif path.resolve() not in seen:
            seen.add(path.resolve())
            _include(reading, path)


def _includes(reading: _Reading, document: Document) -> Iterable[tuple[int, Path]]:
    include: object = document.data.get("include")
    entries = cast("list[object]", include) if isinstance(include, list) else []
    for number, entry in enumerate(entries):
        if isinstance(entry, str) and entry:
            yield number, reading.folders.resolve(entry)


def _include(reading: _Reading, path: Path) -> None:
    document = reading.open(path)
    if document is None:
        return
    if path.suffix in _YAML:
        reading.servers += _agentos(reading, document)
    elif "include" in document.data:
        message = f"expected in {FILE} only: an included file includes no other"
        reading.problems.append(Problem(document.place(("include",)), "include", message))
    else:
        reading.merged.add(document)


def _agentos(reading: _Reading, document: Document) -> list[tuple[McpServer, Place]]:
    from openfang.config.agentos import AgentosFile, to_server  # noqa: PLC0415 - most homes have none

    file = reading.validated(AgentosFile, frozen(document.data), document.place, "id")
    entries = file.mcp_servers if file else ()
    folder = document.path.parent.resolve()  # it may have been named by a path with `..`
    return [
        (to_server(entry, folder), document.place(("mcp_servers", number)))
        for number, entry in enumerate(entries)
    ]


def _override(merged: Merged, environ: Mapping[str, str]) -> None:
    if listen := environ.get("OPENFANG_LISTEN"):
        merged.data["api_listen"] = listen
        merged.places["api_listen",] = Place("OPENFANG_LISTEN")
    cluster = merged.data.setdefault("cluster", {})
    if isinstance(cluster, dict) and (node := environ.get("OPENFANG_NODE")):
        cluster["node"] = node
        merged.places["cluster", "node"] = Place("OPENFANG_NODE")


def _finish(reading: _Reading, config: Config) -> None:
    merged = reading.merged
    own = [(s, merged.place(("mcp_servers", n))) for n, s in enumerate(config.mcp_servers)]
    servers, problems = distinct_servers([*own, *reading.servers])
    reading.problems += [*problems, *settled(config, merged)]
    reading.config = config.with_servers(servers)
    reading.problems += unknown_servers(reading.config, merged)
    _add_rules(reading, reading.config)


def _add_rules(reading: _Reading, config: Config) -> None:
    """Read the policy file; the one that nobody names need not be there."""
    named = config.policy.file
    path = reading.folders.home / RULES if named is None else Path(named)
    reading.files.append(name := reading.shown(path))
    path = reading.instead.get(path, path)
    if named is None and _absent(path):
        return
    match read_rules(path, name, reading.folders, shadow=config.policy.shadow):
        case list() as problems:
            reading.problems += problems
        case rules:
            reading.config = config.with_rules(rules)


def _absent(path: Path) -> bool:
    """Whether nothing is there; what is there and cannot be read is another matter."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
