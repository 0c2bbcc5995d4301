"""Reading a policy file: all mistakes at once, with file, line, key and what was expected."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from openfang.config.documents import Document, read_document
from openfang.config.merge import frozen
from openfang.config.problems import Problem, shown, spell
from openfang.config.rules import PolicyFile, Rules
from openfang.config.validate import validated
from openfang.policy.rules.conditions import BadCondition, Condition, compiled
from openfang.policy.rules.never import Vain, impossible, overruled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from openfang.config.fields import Folders
    from openfang.config.lines import Key
    from openfang.config.rules import RuleEntry
    from openfang.policy.rules.rule import Rule

FILE = "policy.toml"
# What is not known when tools are listed.
_OF_CALLS = ("edges", "mode", "labels", "when", "condition")
_WHO, _WHAT = ("callers", "roles"), ("tools", "kinds", "sources")


def read_rules(
    path: Path, name: str, folders: Folders, *, shadow: bool = False
) -> Rules | list[Problem]:
    """Read a policy file, or find what is wrong with it. `shadow` makes shadows of all rules."""
    match read_document(path, name):
        case Problem() as problem:
            return [problem]
        case document:
            return _read(document, folders, shadow=shadow)


def _read(document: Document, folders: Folders, *, shadow: bool) -> Rules | list[Problem]:
    match validated(PolicyFile, frozen(document.data), document.place, folders):
        case list() as problems:
            return problems
        case file:
            checking = _Checking(document)
            rules = [
                entry.rule(checking.condition(number, entry), shadow=shadow)
                for number, entry in enumerate(file.rules)
            ]
            checking.all(file, rules)
            kept = [rule for rule, one in zip(rules, file.rules, strict=True) if one.enabled]
            return checking.problems or Rules(file, tuple(kept), shadow=shadow)


class _Checking:
    """What no single key can tell."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []

    def all(self, file: PolicyFile, rules: list[Rule]) -> None:
        """Look at each rule, then at all together."""
        self._distinct(file)
        for number, (entry, rule) in enumerate(zip(file.rules, rules, strict=True)):
            for key, message in (*_misplaced(entry), *impossible(rule)):
                self._add(("rules", number, *self._shown(number, key)), message)
        self._moments(file)
        if not self.problems:
            self._overruled(file, rules)

    def condition(self, number: int, entry: RuleEntry) -> Condition | None:
        """Compile a condition, or note what is wrong with it."""
        if entry.condition is None:
            return None
        try:
            return compiled(entry.condition)
        except BadCondition as mistake:
            self._add(("rules", number, "condition"), f"expected {mistake}")
            return None

    def _distinct(self, file: PolicyFile) -> None:
        first: dict[str, int] = {}
        for number, entry in enumerate(file.rules):
            if first.setdefault(entry.name, number) != number:
                there = self.document.place(("rules", first[entry.name]))
                what = f"expected one rule of this name, got another in {there}"
                self._add(("rules", number, "name"), what)

    def _moments(self, file: PolicyFile) -> None:
        for number, test in enumerate(file.tests):
            if test.at is not None and moment_of(test.at) is None:
                what = f"expected a moment such as 2026-11-17T12:00:00Z, got {shown(test.at)}"
                self._add(("tests", number, "at"), what)

    def _overruled(self, file: PolicyFile, rules: list[Rule]) -> None:
        enabled = [rule for rule, one in zip(rules, file.rules, strict=True) if one.enabled]
        numbers = {entry.name: number for number, entry in enumerate(file.rules)}
        for name, (key, message) in overruled(enabled):
            self._add(("rules", numbers[name], *key), message)

    def _shown(self, number: int, key: Key) -> Key:
        """Find the pattern in the file that one of the wanted ones is."""
        if len(key) == 1 or not isinstance(key[1], int):
            return key
        patterns: list[str] = self.document.data["rules"][number][key[0]]
        wanted = [at for at, one in enumerate(patterns) if not one.startswith("!")]
        return key[0], wanted[key[1]]

    def _add(self, key: Key, message: str) -> None:
        place = self.document.place(key)
        self.problems.append(Problem(place, spell(key, self.document.data), message))


def _misplaced(entry: RuleEntry) -> Iterator[Vain]:
    """Find keys that do not go together."""
    if entry.effect == "hide":
        for key in _OF_CALLS:
            if key in entry.model_fields_set:
                yield Vain((key,), "expected in rules for calls: not known when tools are listed")
    if entry.effect == "allow" and not any(getattr(entry, key) for key in _WHO):
        yield Vain(("effect",), 'expected callers or roles as well: for everybody, callers = ["*"]')
    if entry.effect == "allow" and not any(getattr(entry, key) for key in _WHAT):
        yield Vain(("effect",), 'expected tools, kinds or sources as well: for all, tools = ["*"]')
    when = entry.when
    if when is not None and when.after is not None and when.after == when.before:
        yield Vain(("when", "before"), f"expected another time than after, got {when.before}")


def moment_of(text: str) -> int | None:
    """Read a moment, in nanoseconds; one without a zone is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else int(found.timestamp() * 1_000_000_000)
