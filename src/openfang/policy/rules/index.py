"""Which rules are about a caller, a tool, an edge, a mode, labels: each a set of rules, as bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.policy.globs import head, tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from openfang.core.calls import Call, Caller, Mode, Role
    from openfang.core.labels import Labels
    from openfang.core.tools import Tool
    from openfang.policy.rules.rule import Rule

_MOST: Final = 100_000


def bits(of: Iterable[object]) -> int:
    """Make a set of the numbers of those that hold."""
    return sum(1 << number for number, held in enumerate(of) if held)


def numbers(found: int) -> Iterator[int]:
    """Give the numbers in a set, in order."""
    while found:
        lowest = found & -found
        yield lowest.bit_length() - 1
        found ^= lowest


def room(kept: dict[Any, Any]) -> dict[Any, Any]:
    """Make room for one more: what is kept can be found again, and names are without end."""
    if len(kept) >= _MOST:
        kept.clear()
    return kept


class Index:
    """Knows each caller and each tool once it has met them; one that is another is met anew."""

    __slots__ = (
        "_callers",
        "_edges",
        "_ends",
        "_labels",
        "_lengths",
        "_modes",
        "_rules",
        "_tools",
    )

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._callers: dict[tuple[str, Role], int] = {}
        self._tools: dict[str, tuple[Tool, int]] = {}
        self._edges: dict[str, int] = {}
        self._modes: dict[Mode, int] = {}
        self._labels: dict[Labels, int] = {}
        self._ends: dict[tuple[str, str], int] = {}
        for number, rule in enumerate(rules):
            for glob in rule.tools.wanted or ("*",):
                ends = (head(glob), tail(glob))
                self._ends[ends] = self._ends.get(ends, 0) | 1 << number
        self._lengths = sorted({(len(begin), len(end)) for begin, end in self._ends})

    def left(self, tool: Tool, call: Call, labels: Labels) -> int:
        """Give the rules that are about a call, but for times and conditions."""
        left = self.of_tool(tool) & self.of_caller(call.caller)
        if not left:
            return 0
        edge, mode = call.edge, call.context.mode
        over, during, carrying = self._edges, self._modes, self._labels
        if edge not in over:
            room(over)[edge] = bits(rule.over(edge) for rule in self._rules)
        if mode not in during:
            during[mode] = bits(rule.during(mode) for rule in self._rules)
        if labels not in carrying:
            carrying[labels] = bits(rule.labels.hold(labels) for rule in self._rules)
        return left & over[edge] & during[mode] & carrying[labels]

    def of_caller(self, caller: Caller) -> int:
        """Give the rules that are about a caller."""
        key = (caller.id, caller.role)
        known = self._callers.get(key)
        if known is None:
            known = bits(rule.of_caller(caller) for rule in self._rules)
            room(self._callers)[key] = known
        return known

    def of_tool(self, tool: Tool) -> int:
        """Give the rules that are about a tool."""
        known = self._tools.get(tool.id)
        if known is not None and known[0] is tool:
            return known[1]
        rules = self._rules
        found = sum(1 << n for n in numbers(self._perhaps(tool.id)) if rules[n].of_tool(tool))
        room(self._tools)[tool.id] = tool, found
        return found

    def _perhaps(self, tool_id: str) -> int:
        """Give the rules of which a pattern begins and ends as the id does."""
        ends, size, found = self._ends, len(tool_id), 0
        for begin, end in self._lengths:
            found |= ends.get((tool_id[:begin], tool_id[max(0, size - end) :]), 0)
        return found
