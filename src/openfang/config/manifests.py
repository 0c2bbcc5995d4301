"""From `agents/{name}/agent.toml` or `agent.json` to a `Manifest`; every problem of all at once.

What depends on the world (a program, a package, a variable) is not looked at here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openfang.config import schema
from openfang.config.documents import Document, read_document
from openfang.config.fields import Folders
from openfang.config.manifest_models import Manifest
from openfang.config.merge import frozen
from openfang.config.models import Place
from openfang.config.problems import Problem, shown
from openfang.config.validate import validated
from openfang.core.errors import ConfigError
from openfang.core.ids import wire_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.config.fields import Section
    from openfang.config.lines import Key

FOLDER = "agents"
TOML = "agent.toml"
JSON = "agent.json"
FileName: TypeAlias = Literal["agent.toml", "agent.json"]
_NAME_KEYS: dict[str, tuple[str, ...]] = {TOML: ("name",), JSON: ("identity", "id")}


def load_manifests(home: Path) -> Mapping[str, Manifest]:
    """Load every agent of a home, by name; a home without agents has none."""
    reading = _read(home)
    if reading.problems:
        lines = "\n".join(str(problem) for problem in reading.problems)
        raise ConfigError(lines, way_out="openfang config check")
    return reading.manifests


def check_manifests(home: Path) -> tuple[Problem, ...]:
    """Find everything that is wrong with the agents of a home."""
    return tuple(_read(home).problems)


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
    manifests: dict[str, Manifest] = field(default_factory=dict[str, Manifest])
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    problems: list[Problem] = field(default_factory=list[Problem])

    def agent(self, folder: Path) -> None:
        """Read one agent, or note what is wrong with it."""
        document = self.open(folder)
        manifest = None if document is None else self.manifest(document)
        if document is None or manifest is None:
            return
        problems = sorted(self.misfits(document, manifest), key=lambda p: p.place.line)
        self.problems += problems
        if not problems:
            self.manifests[manifest.name] = manifest

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

    def misfits(self, document: Document, manifest: Manifest) -> Iterator[Problem]:
        """Check what a manifest cannot tell alone: where it stands, and who else is there."""
        key = _NAME_KEYS[document.path.name]
        place = document.place(key)
        folder = document.path.parent.name
        if manifest.name != folder:
            what = f"expected the name of its folder, {shown(folder)}, got {shown(manifest.name)}"
            yield Problem(place, ".".join(key), what)
        wire = wire_name(manifest.name)
        first = self.places.setdefault(wire, place)
        if first is not place:
            what = f"expected a name that differs by more than - and _ from the one in {first}"
            yield Problem(place, ".".join(key), what)
        yield from self.misplaced(document, manifest)

    def misplaced(self, document: Document, manifest: Manifest) -> Iterator[Problem]:
        """Refuse a workspace that would let an agent rewrite what governs it."""
        home = self.folders.home.resolve()
        workspace = Path(manifest.workspace or home / "workspaces").resolve()
        inside = workspace.is_relative_to(home / "workspaces")
        if not inside and (workspace.is_relative_to(home) or home.is_relative_to(workspace)):
            what = (
                "expected a folder in the home's workspaces, or apart from the home, "
                f"got {shown(manifest.workspace)}"
            )
            yield Problem(document.place(("workspace",)), "workspace", what)
