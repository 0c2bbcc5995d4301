"""The tests that stand in a policy file: calls that are not made, and what must come of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.app.rules.drafts import tool_of
from openfang.app.rules.looking import Asked, see
from openfang.config.rulebook import moment_of
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.rules.looking import Seen
    from openfang.config.rules import Rules, TestEntry
    from openfang.core.tools import Tool


@dataclass(frozen=True, slots=True)
class Tried:
    """One test, and what came of it."""

    number: int
    entry: TestEntry
    seen: Seen

    @property
    def passed(self) -> bool:
        """Whether it is what was expected, by the rule that was."""
        wanted = self.entry.rule
        by = wanted is None or wanted in self.seen.rules
        return self.seen.says == self.entry.expect and by

    def as_json(self) -> dict[str, Any]:
        """Say the same to a program."""
        return {
            "number": self.number,
            "passed": self.passed,
            "caller": self.entry.caller,
            "tool": self.entry.tool,
            "expected": self.entry.expect,
            "says": self.seen.says,
            "by": list(self.seen.rules),
        }


def run_tests(rules: Rules, tools: Mapping[str, Tool], now: int) -> list[Tried]:
    """Run all tests of a file, on the tools of the node where it has them."""
    return [
        Tried(number, entry, see(rules.compiled, _asked(entry, tools, now)))
        for number, entry in enumerate(rules.file.tests, 1)
    ]


def _asked(entry: TestEntry, tools: Mapping[str, Tool], now: int) -> Asked:
    at = None if entry.at is None else moment_of(entry.at)
    return Asked(
        tool=tools.get(entry.tool) or _written(entry),
        caller=entry.caller,
        role=entry.role,
        edge=entry.edge,
        mode=entry.mode,
        arguments=entry.args,
        labels=entry.labels,
        now=now if at is None else at,
    )


def _written(entry: TestEntry) -> Tool:
    return replace(tool_of(entry.tool), risk=entry.risk, tags=frozenset(entry.tags))
