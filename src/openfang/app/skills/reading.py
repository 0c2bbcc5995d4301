"""A skill's folder in the words of the node: what it offers, and what a person is shown of it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from openfang.app.installs.extensions import sandbox_words
from openfang.app.installs.reviews import Described
from openfang.config.skill_files import MARKDOWN, SCRIPTS, TOML, SkillFile, read_skill
from openfang.config.skills import NO_SETTINGS
from openfang.core.errors import ConfigError
from openfang.core.values import dataclass
from openfang.host.folders import all_files_of
from openfang.sources.skills.spec import Provided, SkillSpec, interpreter_of
from openfang.sources.skills.tools import tools_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.config.skill_files import SkillTool
    from openfang.config.skills import SkillSettings
    from openfang.registry.rules import Rules

CHILDREN: Final = "children"
WORKSPACES: Final = "workspaces"
# What is written to be read; programs and data would be taken for orders where they are none.
_TEXTS: Final = frozenset(
    {"", ".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".org", ".html", ".htm"}
)


def read_folder(folder: Path) -> SkillFile:
    """Read the files that make a folder a skill, or say all that is wrong with them."""
    found = read_skill(folder, placed=False)
    if isinstance(found, SkillFile):
        return found
    told = sorted(found, key=lambda one: one.place.line)
    raise ConfigError("\n".join(map(str, told)), way_out="see docs/skills.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A folder that was read: what it says, and its files."""

    said: SkillFile
    folder: Path
    files: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path) -> Reading:
        """Read one. It blocks, and runs nothing."""
        files = {one.path: one.sha256 for one in all_files_of(folder)}
        return cls(said=read_folder(folder), folder=folder, files=files)

    def spec(self, home: Path, settings: SkillSettings = NO_SETTINGS) -> SkillSpec:
        """Say what it is, with what the operator says of it."""
        said = self.said
        own = home / CHILDREN / f"~skill-{said.name}"  # no code agent has such a name
        workspace = home / WORKSPACES / f"skill-{said.name}"
        return SkillSpec(
            name=said.name,
            version=said.version,
            description=said.description,
            folder=self.folder,
            workspace=workspace,
            own=own,
            files=self.files,
            instructions=said.instructions,
            scripts=self.scripts if settings.scripts else (),
            runtime=said.runtime,
            entry=said.entry,
            tools=tuple(map(_provided, said.tools)),
            network=said.network and settings.network,
            read=tuple(map(Path, settings.fs_read)),
            write=tuple(map(Path, settings.fs_write)),
            trust=settings.trust,
            sandbox=settings.sandbox,
            timeout=settings.timeout_secs,
        )

    @property
    def scripts(self) -> tuple[str, ...]:
        """The files of `scripts/` that something of ours runs."""
        below = (path for path in self.files if path.startswith(f"{SCRIPTS}/"))
        return tuple(path for path in below if interpreter_of(path))

    def described(self, home: Path, settings: SkillSettings, rules: Rules) -> Described:
        """Say what a person is shown before any of it is in force."""
        said, spec = self.said, self.spec(home, settings)
        return Described(
            id=said.name,
            version=said.version,
            written=TOML if TOML in self.files else MARKDOWN[0],
            description=said.description,
            author=said.author,
            license=said.license,
            runtime=said.runtime or "instructions",
            definition=self._definition(),
            tools=tuple(tools_of(spec, rules)),
            permissions=self._permissions(spec),
            words=tuple(self._words(spec)),
            sandbox=sandbox_words(spec.sandbox) if self._runs(spec) else "",
            notes=tuple(map(str, said.notes)),
        )

    def _definition(self) -> dict[str, Any]:
        """All that a model reads of it, other files included: instructions name them."""
        said = self.said
        tools = {one.name: [one.description, one.input_schema] for one in said.tools}
        return {
            "name": said.name,
            "description": said.description,
            "tools": tools,
            "extra": said.extra,
            "instructions": said.instructions,
            "files": dict(self._texts()),
        }

    def _texts(self) -> Iterator[tuple[str, str]]:
        for path in self.files:
            if PurePosixPath(path).suffix.lower() in _TEXTS and path not in MARKDOWN:
                yield path, (self.folder / path).read_text("utf-8", errors="replace")

    def _runs(self, spec: SkillSpec) -> bool:
        return bool(spec.scripts or spec.tools)

    def _permissions(self, spec: SkillSpec) -> dict[str, Any]:
        said = self.said
        return {
            "network": spec.network,
            "scripts": list(spec.scripts),
            "variables": sorted(one.env for one in said.variables if one.env),
            "fs_read": list(map(str, spec.read)),
            "fs_write": list(map(str, spec.write)),
        }

    def _words(self, spec: SkillSpec) -> Iterator[str]:
        said = self.said
        if spec.instructions:
            yield "tell models that read it what to do"
        if spec.scripts:
            yield f"run its scripts: {', '.join(spec.scripts)}"
        if spec.tools:
            yield f"run {spec.entry}, by {spec.runtime}, when one of its tools is called"
        if self._runs(spec):
            yield "read its own folder, and write in a workspace of its own"
            reach = "reach the network, through the guarded egress"
            yield reach if spec.network else "not reach the network"
        names = [one.env for one in said.variables if one.env]
        if names and self._runs(spec):
            yield f"be given the variables {', '.join(names)}"
        for path in spec.read:
            yield f"read {path}"
        for path in spec.write:
            yield f"write {path}"


def _provided(one: SkillTool) -> Provided:
    return Provided(name=one.name, description=one.description, input_schema=one.input_schema)
