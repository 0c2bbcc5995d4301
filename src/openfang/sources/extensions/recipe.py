"""What an extension's process is made of; one that cannot be made says why, and what would help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang import extension
from openfang.core.errors import SourceFailed
from openfang.host import children
from openfang.host.children.start import Node, Python, Recipe
from openfang.host.folders import seal_of
from openfang.safety.environment import child_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.extensions import ExtensionSpec

PLACE: Final = "children/~ext-"
_HERE: Final = Path(__file__).parent
_PYTHON: Final = _HERE / "inside.py"
_NODE: Final = _HERE / "inside.mjs"
_SHARED: Final = Path(children.__file__).parent
_MODULE: Final = Path(extension.__file__)
_PIN: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]+\])?\s*==\s*[A-Za-z0-9.!+_-]+"
    r"(\s*;[^#\n]*?)?(\s+--hash=sha256:[0-9a-f]{64})*"
)


def recipe_of(spec: ExtensionSpec, environ: Mapping[str, str]) -> Recipe:
    """Say what to start: its folder to read, its workspace to write, and what it is permitted."""
    may, runtime = spec.permissions, spec.runtime
    python = runtime.kind == "python"
    check_pinned(spec.id, runtime.requirements)
    return Recipe(
        who=f"The extension {spec.id}",
        name=spec.id,
        place=f"{PLACE}{spec.id}",
        runtime=Python(version=runtime.python, requirements=runtime.requirements)
        if python
        else Node(),
        script=(str(_PYTHON if python else _NODE), str(spec.folder / runtime.entry[0])),
        workspace=spec.workspace,
        read=(spec.folder, *((_SHARED, _MODULE) if python else ())),
        fs_read=may.read,
        fs_write=may.write,
        variables=variables_of(spec, environ),
        network=may.network,
        sandbox=spec.sandbox,
        memory_bytes=runtime.memory_bytes,
        cpu_seconds=runtime.cpu_seconds,
        disk_bytes=runtime.disk_bytes,
        greeting={
            "tools": [one.name for one in spec.capabilities],
            "config": dict(spec.config),
        },
        seal=seal_of(spec.folder, spec.digest),
        settings=f"{spec.folder}/manifest.json",
        listing="openfang ext list",
        log="openfang.extensions",
        idle=spec.idle,
    )


def variables_of(spec: ExtensionSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Give the variables of ours that it is permitted; one that is not set is a fault."""
    found = child_environment(environ, names=spec.permissions.variables)
    return {name: found[name] for name in spec.permissions.variables}


def check_pinned(owner: str, requirements: Sequence[str]) -> None:
    """Refuse packages whose version is anybody's guess."""
    for one in requirements:
        if not _PIN.fullmatch(one.strip()):
            raise SourceFailed(
                f"The extension {owner} requires {one!r}, which is not pinned.",
                way_out="write NAME==VERSION, if you like with --hash=sha256:..., in requirements",
            )
