"""What a person is shown before anything of an extension or a skill may run."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from openfang.core.tools import Risk
from openfang.core.values import dataclass
from openfang.registry.differences import changes
from openfang.registry.pins import finding_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.core.installs import InstallKind
    from openfang.core.tools import Tool
    from openfang.host.folders import FolderFile
    from openfang.registry.differences import Change
    from openfang.safety.definitions import Finding
    from openfang.storage.installs import Install


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a folder says of itself, as the file `written` in it has it.

    `definition` is all that a model or a person reads of it: that is scanned. `permissions` are
    compared from one version to the next; `words` say the same to people, `sandbox` what confines
    it. `notes` are oddities that stop nothing.
    """

    id: str
    version: str
    written: str
    title: str = ""
    description: str = ""
    author: str = ""
    license: str = ""
    runtime: str = ""
    definition: Mapping[str, Any]
    tools: tuple[Tool, ...] = ()
    permissions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    words: tuple[str, ...] = ()
    sandbox: str = ""
    notes: tuple[str, ...] = ()


class Sort(Protocol):
    """One sort of what can be added: how it is read, and how it is put in force and taken out."""

    kind: ClassVar[InstallKind]

    def read(self, folder: Path) -> Described:
        """Read what a folder says of itself; whatever is wrong with it is a `ConfigError`.

        It blocks, and runs nothing. The folder need not be where it will lie.
        """
        ...

    async def put(self, install: Install, folder: Path) -> None:
        """Offer it, or replace what is offered of it, at once; what is under way goes on."""
        ...

    async def drop(self, id_: str) -> None:
        """Take it away; one that is not there is no fault."""
        ...

    async def settled(self, id_: str) -> None:
        """Wait until it is known what it offers, but never long."""
        ...

    def state(self, id_: str) -> Mapping[str, Any]:
        """Say how it runs, as JSON: `how`, `reason` and what else there is to say."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All that is to be known of one folder. `accepted` is what was shown when it was accepted.

    With `lenient` findings are shown, and stand in nobody's way.
    """

    kind: InstallKind
    described: Described
    files: tuple[FolderFile, ...]
    digest: str
    origin: str
    findings: tuple[Finding, ...] = ()
    accepted: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lenient: bool = False

    @property
    def id(self) -> str:
        """What it is called."""
        return self.described.id

    @property
    def grave(self) -> tuple[str, ...]:
        """Why a plain yes is not enough."""
        tools = self.described.tools
        critical = [one.name for one in tools if one.risk is Risk.CRITICAL]
        grave = [] if self.lenient else [one for one in self.findings if one.serious]
        found = [f"{one.code} at {one.place}" for one in grave]
        return (*(f"the tool {name} is CRITICAL" for name in critical), *found)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What differs from what was accepted; nothing, where nothing was."""
        if not self.accepted:
            return ()
        return changes(compared(self.accepted), compared(self.body()))

    def body(self) -> dict[str, Any]:
        """The same as JSON; without `changes`, which need what was before."""
        one = self.described
        return {
            "id": one.id,
            "kind": self.kind,
            "version": one.version,
            "title": one.title,
            "description": one.description,
            "author": one.author,
            "license": one.license,
            "runtime": one.runtime,
            "origin": self.origin,
            "digest": self.digest,
            "files": [asdict(file) for file in self.files],
            "tools": [_tool_body(tool) for tool in one.tools],
            "permissions": dict(one.permissions),
            "may": list(one.words),
            "sandbox": one.sandbox,
            "notes": list(one.notes),
            "findings": finding_bodies(self.findings),
            "grave": list(self.grave),
        }


def _tool_body(tool: Tool) -> dict[str, Any]:
    return {
        "id": tool.id,
        "name": tool.name,
        "title": tool.title or "",
        "description": tool.description,
        "risk": tool.risk.name,
        "side_effects": sorted(tool.tags),
        "input_schema": dict(tool.input_schema),
        "output_schema": tool.output_schema and dict(tool.output_schema),
        "annotations": dict(tool.annotations),
    }


def compared(body: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a review out so that two of them can be compared part by part."""
    kept = {key: body.get(key) for key in ("version", "runtime", "permissions", "sandbox")}
    files = {one["path"]: _file_words(one) for one in body.get("files", ())}
    return {**kept, "tools": {one["name"]: one for one in body.get("tools", ())}, "files": files}


def _file_words(file: Mapping[str, Any]) -> str:
    program = ", executable" if file["executable"] else ""
    return f"{file['size']} bytes{program}, sha256 {file['sha256'][:16]}"
