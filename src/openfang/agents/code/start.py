"""What is to be started for a code agent, and who confines it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from openfang.host.process import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.agents.spec import AgentSpec, Program, Sandbox
    from openfang.host.process import Launch

_INSIDE: Final = Path(__file__).with_name("inside.py")
_OPEN_FILES: Final = 1024
_FILE_SIZE: Final = 1 << 30
MOST_PROCESSES: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A program, the folders that it may read, and the one that it may write. No network.

    `limits.processes` counts its threads, too, and holds where it is counted alone: in a user
    namespace of its own.
    """

    agent: str
    argv: tuple[str, ...]
    read: tuple[Path, ...]
    workspace: Path
    sandbox: Sandbox
    cpu_seconds: int
    limits: Limits


class Confine(Protocol):
    """Says how a program is really started: with folders of its own, and in a sandbox."""

    async def __call__(self, start: Start) -> Launch:
        """Make its folders, and give the command that starts it confined."""
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


def to_start(spec: AgentSpec, program: Program, python: Path, environment: Path | None) -> Start:
    """Say what to start. Nothing that lies around the agent is picked up by its Python."""
    inside = (str(python), "-I", "-B", "-X", "utf8", str(_INSIDE))
    cpu = ceil(program.cpu_seconds)
    return Start(
        agent=spec.name,
        argv=(*inside, str(program.file), program.function),
        read=(program.root, *([environment] if environment else [])),
        workspace=spec.workspace,
        sandbox=program.sandbox,
        cpu_seconds=cpu,
        limits=Limits(
            memory=program.memory_bytes,
            processes=2 * MOST_PROCESSES,
            open_files=_OPEN_FILES,
            file_size=_FILE_SIZE,
            cpu_seconds=cpu + 1,
        ),
    )
