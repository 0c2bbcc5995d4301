"""One skill as a value: what it says, what it runs, and what that may reach."""

from __future__ import annotations

from dataclasses import field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from openfang.core.ids import Kind, tool_id
from openfang.core.tools import Trust
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Sandbox: TypeAlias = Literal["auto", "required", "off"]
Interpreter: TypeAlias = Literal["python", "node", "shell"]
_BY_SUFFIX: Final[Mapping[str, Interpreter]] = {
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".sh": "shell",
}


def interpreter_of(path: str) -> Interpreter | None:
    """Say what runs a file, by its name; None is nothing that we run."""
    return _BY_SUFFIX.get(PurePosixPath(path).suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """One tool that a skill declares."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSpec:
    """What is known of a skill. Two that are equal are the same.

    `files` are those of its folder, which it can only read, with the hash of each as it was
    accepted. `workspace` is its own to write, `own` where its private folders are made. `scripts`
    are the files that a caller may have run.
    """

    name: str
    description: str
    version: str = "0.1.0"
    folder: Path
    workspace: Path
    own: Path
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    instructions: str = ""
    scripts: tuple[str, ...] = ()
    runtime: Interpreter | None = None
    entry: str = ""
    tools: tuple[Provided, ...] = ()
    network: bool = False
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    trust: Trust = Trust.MEDIUM
    sandbox: Sandbox = "auto"
    timeout: float = 30.0

    @property
    def id(self) -> str:
        """Whose its programs are."""
        return tool_id(Kind.EXTENSION, self.name)
