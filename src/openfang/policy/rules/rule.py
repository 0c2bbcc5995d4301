"""One rule: whom and what it is about, and what it says. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.policy.globs import pattern

if TYPE_CHECKING:
    from openfang.core.calls import Caller, Mode, Role
    from openfang.core.ids import Kind
    from openfang.core.tools import Risk, Tool
    from openfang.policy.rules.conditions import Condition
    from openfang.policy.rules.hours import Hours

Says: TypeAlias = Literal["allow", "ask", "deny", "hide"]


@dataclass(frozen=True, slots=True)
class Names:
    """Patterns of names: those that are wanted, all if there are none, without the unwanted."""

    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()

    def hold(self, name: str) -> bool:
        """Whether the name is one of them."""
        if self.wanted and not pattern(self.wanted).match(name):
            return False
        return not (self.unwanted and pattern(self.unwanted).match(name))


ANY_NAME = Names()


@dataclass(frozen=True, slots=True)
class Carried:
    """What a call must carry: one of `some`, all of `every`, none of `never`."""

    some: Labels = Labels.NONE
    every: Labels = Labels.NONE
    never: Labels = Labels.NONE

    def hold(self, labels: Labels) -> bool:
        """Whether a call with these labels is meant."""
        if labels & self.never or labels & self.every != self.every:
            return False
        return not self.some or bool(labels & self.some)


ANYTHING = Carried()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Every field narrows; one that is empty does not. A `shadow` is recorded, never enforced."""

    name: str
    says: Says
    callers: Names = ANY_NAME
    roles: frozenset[Role] = frozenset()
    edges: frozenset[str] = frozenset()
    tools: Names = ANY_NAME
    kinds: frozenset[Kind] = frozenset()
    sources: Names = ANY_NAME
    risk: Risk | None = None
    tags: frozenset[str] = frozenset()
    mode: Mode | None = None
    labels: Carried = ANYTHING
    hours: Hours | None = None
    condition: Condition | None = None
    reason: str = ""
    way_out: str = ""
    shadow: bool = False

    @property
    def code(self) -> str:
        """The reason code of what it refuses or asks."""
        return f"rule:{self.name}"

    @property
    def told(self) -> str:
        """The reason that is given for it."""
        return self.reason or f"Rule {self.name} says {self.says}"

    @property
    def help(self) -> str:
        """The way out that is offered."""
        return self.way_out or f"ask the operator, who can change rule {self.name} in policy.toml"

    def of_tool(self, tool: Tool) -> bool:
        """Whether the tool is one that it is about."""
        if self.risk is not None and tool.risk < self.risk:
            return False
        if self.kinds and tool.kind not in self.kinds:
            return False
        if self.tags and tool.tags.isdisjoint(self.tags):
            return False
        return self.sources.hold(tool.source) and self.tools.hold(tool.id)

    def of_caller(self, caller: Caller) -> bool:
        """Whether the caller is one that it is about."""
        if self.roles and caller.role not in self.roles:
            return False
        return self.callers.hold(caller.id)

    def over(self, edge: str) -> bool:
        """Whether it is about calls that come in there."""
        return not self.edges or edge in self.edges

    def during(self, mode: Mode) -> bool:
        """Whether it is about calls of this mode."""
        return self.mode is None or mode is self.mode
