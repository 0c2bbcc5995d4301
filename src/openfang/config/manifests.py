"""From `agents/{name}/agent.toml` or `agent.json` to a `Manifest`; every problem of all at once.

What depends on the world (a program, a package, a variable) is not looked at here.
"""

from __future__ import annotations

import os
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from openfang.config import schema
from openfang.config.builtins import mistaken, no_host
from openfang.config.documents import Document, parse_document, read_document
from openfang.config.fields import Folders, Section
from openfang.config.manifest_models import Manifest
from openfang.config.merge import frozen
from openfang.config.models import Place
from openfang.config.problems import Problem, shown
from openfang.config.unserved import Known, doubts
from openfang.config.validate import validated
from openfang.config.workspaces import may_be_workspace
from openfang.core.errors import ConfigError
from openfang.core.ids import wire_name
from openfang.core.installs import FOLDERS
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

FOLDER = "agents"
TOML = "agent.toml"
JSON = "agent.json"
Roots: TypeAlias = tuple[str, ...]
FileName: TypeAlias = Literal["agent.toml", "agent.json"]
_Model = TypeVar("_Model", bound=Section)
_NAME_KEYS: dict[str, tuple[str, ...]] = {TOML: ("name",), JSON: ("identity", "id")}


def read_manifests(
    home: Path, roots: Roots = ()
) -> tuple[Mapping[str, Manifest], tuple[Problem, ...]]:
    """Read every agent of a home that can be read, by name, and what is wrong with the others.

    `roots` are folders in which workspaces may lie, beside the home's own.
    """
    reading = _read(home, roots)
    return reading.manifests, tuple(reading.problems)


def parse_manifest(text: str, home: Path) -> Manifest:
    """Read the text of an `agent.toml` that stands in no folder."""
    path = home / FOLDER / "text" / TOML
    match parse_document(text, path, TOML):
        case Problem() as problem:
            problems = [problem]
        case document:
            reading = _Reading(Folders(home=home.absolute(), user=Path.home()))
            manifest = reading.valid(Manifest, document)
            problems = reading.problems
            if manifest is not None:
                problems = sorted(reading.unfit(document, manifest), key=_line)
            if manifest is not None and not problems:
                return manifest
    raise ConfigError("\n".join(map(str, problems)), way_out="openfang agents validate")


def check_manifests(home: Path, roots: Roots = ()) -> tuple[Problem, ...]:
    """Find everything that is wrong with the agents of a home."""
    return tuple(_read(home, roots).problems)


def doubtful(
    home: Path, roots: Roots, servers: Collection[str], providers: Collection[str] = ()
) -> tuple[Problem, ...]:
    """Find what right manifests say in vain; servers and providers are the configuration's."""
    reading, known = _read(home, roots), Known(servers, providers, _installed(home))
    return tuple(
        Problem(document.place(tuple(key.split("."))), key, what)
        for name, document in reading.documents.items()
        for key, what in doubts(reading.manifests[name], document.path.parent, known)
    )


def _installed(home: Path) -> list[str]:
    """Name every skill and extension that lies in a home, whether it is enabled or not."""
    return [one.name for folder in FOLDERS.values() for one in (home / folder).glob("[!.]*")]


def check_draft(home: Path, draft: Path, file: Path, roots: Roots = ()) -> tuple[Problem, ...]:
    """Find what would be wrong with an agent if `draft` stood in the place of its `file`."""
    folder = file.parent.name
    reading = _read(home, roots, without=folder)
    reading.problems.clear()
    match read_document(draft, f"{FOLDER}/{folder}/{file.name}"):
        case Problem() as problem:
            return (problem,)
        case document:
            reading.take(replace(document, path=file))
            return tuple(reading.problems)


def json_schema(file: FileName = TOML) -> dict[str, Any]:
    """Describe one of the two files as JSON Schema, draft 2020-12."""
    return schema.json_schema(_model_of(file), f"OpenFang {file}")


def settings(file: FileName = TOML) -> list[schema.Setting]:
    """List every key of one of the two files."""
    return schema.settings(_model_of(file))


def _model_of(file: FileName) -> type[Section]:
    if file == TOML:
        return Manifest
    from openfang.config.starry import StarryFile  # noqa: PLC0415 - most homes have none

    return StarryFile


@dataclass(slots=True)
class _Reading:
    folders: Folders
    roots: Roots = ()
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    manifests: dict[str, Manifest] = field(default_factory=dict[str, Manifest])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    problems: list[Problem] = field(default_factory=list[Problem])

    def agent(self, folder: Path) -> None:
        """Read one agent, or note what is wrong with it."""
        document = self.open(folder)
        if document is not None:
            self.take(document)

    def take(self, document: Document) -> None:
        """Take the agent that a file describes."""
        manifest = self.manifest(document)
        if manifest is None:
            return
        problems = sorted(self.misfits(document, manifest), key=_line)
        self.problems += problems
        if not problems:
            self.manifests[manifest.name] = manifest
            self.documents[manifest.name] = document

    def open(self, folder: Path) -> Document | None:
        name = f"{FOLDER}/{folder.name}"
        found = [file for file in (TOML, JSON) if _present(folder / file)]
        if len(found) != 1:
            got = "both" if found else "neither"
            what = f"expected {TOML} or {JSON}, got {got}"
            self.problems.append(Problem(Place(name), "", what))
            return None
        match read_document(folder / found[0], f"{name}/{found[0]}"):
            case Problem() as problem:
                self.problems.append(problem)
                return None
            case document:
                return document

    def manifest(self, document: Document) -> Manifest | None:
        if document.path.name == TOML:
            return self.valid(Manifest, document)
        from openfang.config.starry import StarryFile, to_manifest  # noqa: PLC0415 - most homes have none

        file = self.valid(StarryFile, document)
        return None if file is None else to_manifest(file)

    def valid(self, model: type[_Model], document: Document) -> _Model | None:
        match validated(model, frozen(document.data), document.place, self.folders):
            case list() as problems:
                self.problems += sorted(problems, key=_line)
                return None
            case file:
                return file

    def misfits(self, document: Document, manifest: Manifest) -> Iterator[Problem]:
        """Check what a manifest cannot tell alone: where it stands, and who else is there."""
        yield from self.misnamed(document, manifest.name)
        yield from self.unfit(document, manifest)

    def unfit(self, document: Document, manifest: Manifest) -> Iterator[Problem]:
        """Check what no agent can have, wherever its manifest stands."""
        granted = manifest.capabilities
        for key, grants, wrong in (
            ("tools", granted.tools, mistaken),
            ("network", granted.network, no_host),
        ):
            path = ("capabilities", key)
            for what in filter(None, map(wrong, grants)):
                yield Problem(document.place(path), ".".join(path), what)
        workspace = manifest.workspace
        if workspace and not may_be_workspace(workspace, self.folders, self.roots):
            what = (
                "expected a folder inside the home's workspaces, or one of your own inside "
                f"agents.workspace_roots, got {shown(workspace)}"
            )
            yield Problem(document.place(("workspace",)), "workspace", what)

    def misnamed(self, document: Document, name: str) -> Iterator[Problem]:
        path = _NAME_KEYS[document.path.name]
        place, key = document.place(path), ".".join(path)
        folder = document.path.parent.name
        if name != folder:
            what = f"expected the name of its folder, {shown(folder)}, got {shown(name)}"
            yield Problem(place, key, what)
            return
        first = self.places.setdefault(wire_name(name), place)
        if first is not place:
            what = f"expected a name that differs by more than - and _ from the one in {first}"
            yield Problem(place, key, what)


def _read(home: Path, roots: Roots, *, without: str = "") -> _Reading:
    home = home.absolute()
    reading = _Reading(Folders(home=home, user=Path.home()), roots)
    try:
        folders = sorted(_folders(home / FOLDER))
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        reading.problems.append(Problem(Place(FOLDER), "", what))
        return reading
    for folder in folders:
        if folder.name != without:
            reading.agent(folder)
    return reading


def _folders(agents: Path) -> Iterator[Path]:
    """Find what may be an agent; files beside them, and what is hidden, are none."""
    if not _present(agents):
        return
    for entry in agents.iterdir():
        if entry.is_dir() and not entry.name.startswith("."):
            yield entry


def _present(path: Path) -> bool:
    """Whether anything is there, be it a link to nowhere: that is an error and no absence."""
    return os.path.lexists(path)


def _line(problem: Problem) -> int:
    return problem.place.line
