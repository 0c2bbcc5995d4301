"""Who calls without a key: whoever uses this machine. Never an administrator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.app.home.first_key import DEFAULT_PROJECT
from openfang.app.offering.terms import toolset_of
from openfang.core.calls import Caller, Grants
from openfang.policy.selection import AGENTS

if TYPE_CHECKING:
    from openfang.app.parts import Parts
    from openfang.edges.mcp.ports import Place

ANYBODY: Final = Caller(id="local-mcp", grants=Grants(tools=("*",)), projects=(DEFAULT_PROJECT,))


def local_caller(parts: Parts, place: Place) -> Caller:
    """Say who calls over stdio: to that one, agents are offered, and the toolset that it chose."""
    if place.toolset:
        toolset_of(parts.config, place.toolset)  # one that is not there is said at once
    return ANYBODY if place.agent else replace(ANYBODY, within=AGENTS)
