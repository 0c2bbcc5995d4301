"""What a code agent's process is made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.agents.spec import Program
from openfang.core.errors import SourceFailed
from openfang.host import children
from openfang.host.children.start import Python, Recipe

if TYPE_CHECKING:
    from openfang.agents.spec import AgentSpec

_INSIDE: Final = Path(__file__).with_name("inside.py")
_SHARED: Final = Path(children.__file__).parent


def recipe_of(spec: AgentSpec) -> Recipe:
    """Say what to start: no network, and its workspace to write."""
    program = spec.does
    if not isinstance(program, Program):
        raise SourceFailed(f"The agent {spec.name} is no program.")
    return Recipe(
        who=f"The agent {spec.name}",
        name=spec.name,
        place=f"children/{spec.name}",
        runtime=Python(version=program.python, requirements=program.requirements),
        script=(str(_INSIDE), str(program.file), program.function),
        read=(_SHARED, program.root),
        workspace=spec.workspace,
        sandbox=program.sandbox,
        memory_bytes=program.memory_bytes,
        cpu_seconds=program.cpu_seconds,
        watched=program.root,
        settings=f"{program.file.parent}/agent.toml",
        listing="openfang agents list",
        log="openfang.agents",
    )
