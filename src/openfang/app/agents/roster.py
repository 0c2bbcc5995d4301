"""The agents as people see them: those that a caller may call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller

_INSIDERS: Final = (Role.AUDITOR, Role.ADMIN)


async def agents_body(parts: Parts, caller: Caller) -> list[Mapping[str, Any]]:
    """All that the caller may call; what they may reach themselves is for who has a role."""
    if parts.agents is None:
        return []
    agents = await parts.agents.opened()
    return agents.cards(caller) if caller.role in _INSIDERS else agents.known(caller)


async def agent_body(parts: Parts, caller: Caller, name: str) -> Mapping[str, Any]:
    """One of them; another does not exist."""
    found = {one["name"]: one for one in await agents_body(parts, caller)}
    if name not in found:
        raise NotFound(f"No agent {name} is there.", way_out="openfang agents list")
    return found[name]
