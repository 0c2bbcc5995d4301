"""Looks up what a call shows: its frozen spec, and its admin token. The gates read what was found.

What cannot be found out, or was not looked for, is not there: then the gates refuse.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.core.calls import Call, Papers
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.storage.keys import KeyStore
    from openfang.storage.specs import SpecStore


@dataclass(frozen=True, slots=True)
class Archive:
    """Knows which specs are frozen, and which admin tokens are in force."""

    specs: SpecStore
    keys: KeyStore

    async def shown(self, call: Call) -> Call:
        """Give the call its papers as they are now. Nothing may be awaited before they are read."""
        spec, token = call.context.spec_hash, call.admin_token
        if not spec and not token:
            return call
        projects = await self.specs.projects(spec) if spec else frozenset[str]()
        found = await self.keys.find_token(token) if token else None
        return replace(call, papers=Papers(projects=projects, tools=found.tools if found else ()))
