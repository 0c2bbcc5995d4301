"""What a warm child is made of, what is to be started for it, and who confines it."""

from __future__ import annotations

from dataclasses import field
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from openfang.core.values import dataclass
from openfang.host.process import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AsyncExitStack
    from pathlib import Path

    from openfang.host.folders import Seal
    from openfang.host.process import Launch

Sandbox: TypeAlias = Literal["required", "auto", "off"]
_OPEN_FILES: Final = 1024
_FILE_SIZE: Final = 1 << 30
MOST_PROCESSES: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """A Python: ours, or the one that is named; with packages in an environment of its own."""

    version: str | None = None
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The Node.js of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a warm child is made of. Two that are equal are the same.

    `who` is how sentences about it begin; `place` names the folder of its own under `children`.
    `script` is what its `runtime` runs, `greeting` what it is told first. `watched` is the folder
    that is looked at for changes, `settings` the file in which its author corrects what is wrong.
    A `seal` is looked at whenever it is started.
    `read` belongs to it, `fs_read` and `fs_write` are what the operator lets it reach besides.
    `disk_bytes` bounds what lies in its workspace. It ends when nobody wanted anything for `idle`
    seconds.
    """

    who: str
    name: str
    place: str
    runtime: Python | Node
    script: tuple[str, ...]
    workspace: Path
    read: tuple[Path, ...] = ()
    fs_read: tuple[Path, ...] = ()
    fs_write: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    network: bool = False
    sandbox: Sandbox = "required"
    memory_bytes: int = 256 << 20
    cpu_seconds: float = 30.0
    disk_bytes: float = inf
    greeting: Mapping[str, Any] | None = field(default=None, repr=False)
    watched: Path | None = None
    seal: Seal | None = None
    settings: str = ""
    listing: str = ""
    log: str = "openfang.children"
    idle: float = inf

    @property
    def weighed(self) -> bool:
        """Whether only what its processes hold is bounded, and not what each of them reserves."""
        return isinstance(self.runtime, Node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A program, the folders that it may read, and those that it may write.

    `limits.processes` counts its threads, too, and holds where it is counted alone: in a user
    namespace of its own.
    """

    who: str
    name: str
    place: str
    argv: tuple[str, ...]
    read: tuple[Path, ...]
    workspace: Path
    sandbox: Sandbox
    cpu_seconds: int
    limits: Limits
    fs_read: tuple[Path, ...] = ()
    fs_write: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    network: bool = False


class Confine(Protocol):
    """Says how a program is really started: with folders of its own, and in a sandbox."""

    async def __call__(self, start: Start, stack: AsyncExitStack) -> Launch:
        """Give the command that starts it confined; what it needs meanwhile is held by `stack`."""
        ...


class Witness(Protocol):
    """Looks at a process that was started."""

    async def __call__(self, start: Start, pid: int) -> Sequence[str]:
        """Name what stands between it and the machine."""
        ...


async def nobody_looks(start: Start, pid: int) -> Sequence[str]:
    """Claim nothing."""
    del start, pid
    return ()


def to_start(recipe: Recipe, program: Path, environment: Path | None) -> Start:
    """Say what to start. Nothing that lies around the code is picked up by its runtime."""
    cpu = ceil(recipe.cpu_seconds)
    return Start(
        who=recipe.who,
        name=recipe.name,
        place=recipe.place,
        argv=(str(program), *_options(recipe), *recipe.script),
        read=(*recipe.read, *([environment] if environment else [])),
        fs_read=recipe.fs_read,
        fs_write=recipe.fs_write,
        workspace=recipe.workspace,
        variables=recipe.variables,
        network=recipe.network,
        sandbox=recipe.sandbox,
        cpu_seconds=cpu,
        limits=Limits(
            # Node reserves far more than it uses.
            memory=None if recipe.weighed else recipe.memory_bytes,
            processes=2 * MOST_PROCESSES,
            open_files=_OPEN_FILES,
            file_size=_FILE_SIZE,
            cpu_seconds=cpu + 1,
        ),
    )


def _options(recipe: Recipe) -> tuple[str, ...]:
    if isinstance(recipe.runtime, Python):
        return ("-I", "-B", "-X", "utf8")
    return (f"--max-old-space-size={max(16, recipe.memory_bytes >> 20)}",)
