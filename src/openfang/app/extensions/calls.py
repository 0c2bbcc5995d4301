"""The call that an extension makes while it serves another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.core.calls import Caller
from openfang.core.ids import Kind, tool_id
from openfang.policy.grants import held_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from openfang.core.calls import Call, Grants
    from openfang.core.extensions import ExtensionSpec

_RECALL: Final = tool_id(Kind.BUILTIN, "memory_recall")
_STORE: Final = tool_id(Kind.BUILTIN, "memory_store")


def made(spec: ExtensionSpec, parent: Call, tool: str, arguments: Mapping[str, Any]) -> Call:
    """Make it in the extension's name, for what both it and its caller may do.

    Mode, project, spec, blacklist and selection stay those of the call that it serves; so does
    the run.
    """
    return replace(
        parent.child(tool, arguments, ancestor=spec.caller_id),
        caller=caller_of(spec, parent.caller),
        run=parent.run_id,
    )


def caller_of(spec: ExtensionSpec, caller: Caller) -> Caller:
    """The extension as the one who calls, on behalf of somebody."""
    own = Caller(
        id=spec.caller_id,
        grants=_grants(spec.permissions.grants),
        mode=caller.mode,
        projects=caller.projects,
        spec=caller.spec,
        blacklist=caller.blacklist,
        cells_per_minute=caller.cells_per_minute,
        bounds=caller.bounds,
        within=caller.within,
    )
    return held_to(own, caller)


def _grants(grants: Grants) -> Grants:
    """Whoever may read or write memory may use the tool for that."""
    return replace(grants, tools=(*grants.tools, *_for_memory(grants)))


def _for_memory(grants: Grants) -> Iterator[str]:
    if grants.memory_read:
        yield _RECALL
    if grants.memory_write:
        yield _STORE
