"""What a caller sees: one rule for the list and for the call (C7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.errors import UnknownTool
from openfang.core.ids import Kind
from openfang.core.tools import Tool
from openfang.core.values import dataclass
from openfang.policy.grants import can_see

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Caller
    from openfang.core.tools import Risk
    from openfang.policy.rules.book import Book
    from openfang.registry.registry import Registry

NO_TOOL: Final = Tool(id="mcp::", kind=Kind.MCP, source="", name="", wire_name="mcp__")


@dataclass(slots=True)
class Catalog:
    """Reads the registry through a caller's eyes. Only a new configuration changes the rules."""

    registry: Registry
    rules: Book | None = None

    def sees(self, caller: Caller, tool: Tool) -> bool:
        """Whether the tool exists for this caller: it is granted, and no rule hides it."""
        if self.rules is None:
            return can_see(caller, tool)
        return can_see(caller, tool) and not self.rules.hides(caller, tool)

    def sight(self, caller: Caller) -> object:
        """What besides grants tells one caller's list from another's; equal for equal lists."""
        return None if self.rules is None else self.rules.sight(caller)

    def find(self, caller: Caller, name: str) -> Tool:
        """Resolve any name of a tool that this caller can see; the others do not exist."""
        tool = self.registry.snapshot.find(name)
        # One that is not there is looked at all the same: who waits must not learn which it was.
        seen = self.sees(caller, tool or NO_TOOL)
        if tool is None or not seen:
            raise UnknownTool(name, hidden=tool is not None)
        return tool

    def list(
        self,
        caller: Caller,
        *,
        kind: Kind | None = None,
        risk: Risk | None = None,
        tag: str | None = None,
        disabled: bool = False,
    ) -> Sequence[Tool]:
        """List what this caller can see and use, by wire name."""
        found = self.registry.snapshot.select(
            kinds=None if kind is None else (kind,),
            risks=None if risk is None else (risk,),
            tags=None if tag is None else (tag,),
            enabled=None if disabled else True,
        )
        visible = (tool for tool in found if self.sees(caller, tool))
        return sorted(visible, key=lambda tool: tool.wire_name)
