"""Rules that can never have a say: what they name cannot be, or another rule has said it. Pure.

In doubt a rule stays. What is found is a mistake of the file, as a wrong type is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from openfang.core.calls import Role
from openfang.core.ids import Kind
from openfang.core.keys import EDGES as KEY_EDGES
from openfang.policy.globs import head, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from openfang.policy.rules.rule import Carried, Names, Rule, Says

Key: TypeAlias = tuple[str | int, ...]

# How a caller's id can begin; only keys have roles.
CALLERS: Final = ("key:", "agent:", "oauth:", "mcp:", "a2a:", "local-mcp", "nobody")
EDGES: Final = tuple(sorted({*KEY_EDGES, "cli", "python", "resume", "schedule", "trigger"}))
_WITH_ROLES: Final = ("key:",)
_STRENGTH: Final[dict[Says, int]] = {"allow": 0, "ask": 1, "deny": 2, "hide": 3}


class Vain(NamedTuple):
    """Why a rule, or one key of it, is in vain: the key, and what was expected there."""

    key: Key
    message: str


def impossible(rule: Rule) -> Iterator[Vain]:
    """Find what no caller, tool or call can be."""
    kinds = [f"{kind.value}:" for kind in rule.kinds or Kind]
    yield from _unborn("callers", rule.callers, CALLERS)
    yield from _unborn("tools", rule.tools, kinds)
    if rule.kinds == frozenset((Kind.BUILTIN,)) and not rule.sources.hold(Kind.BUILTIN.value):
        yield Vain(("sources",), "expected builtin: the kind of these tools has no other source")
    if rule.roles and Role.USER not in rule.roles and not _any_of(rule.callers, _WITH_ROLES):
        yield Vain(("roles",), "expected user: of all callers only keys have another role")
    yield from _contradicting(rule.labels)


def _unborn(key: str, names: Names, heads: Iterable[str]) -> Iterator[Vain]:
    heads = tuple(heads)
    for number, glob in enumerate(names.wanted):
        if not _may_be(glob, heads):
            known = ", ".join(heads)
            yield Vain((key, number), f"expected what can begin with one of {known}, got {glob}")
    if all(_within(glob, names.unwanted) for glob in names.wanted or ("*",)):
        yield Vain((key,), "expected something to be left by what `!` takes out")


def _contradicting(labels: Carried) -> Iterator[Vain]:
    if labels.every & labels.never:
        both = ", ".join((labels.every & labels.never).names)
        yield Vain(("labels",), f"expected all and none to differ, got {both} in both")
    if labels.some and labels.some & labels.never == labels.some:
        both = ", ".join(labels.some.names)
        yield Vain(("labels",), f"expected any to hold what none does not, got {both}")


def _any_of(names: Names, heads: Iterable[str]) -> bool:
    return not names.wanted or any(_may_be(glob, heads) for glob in names.wanted)


def _may_be(glob: str, heads: Iterable[str]) -> bool:
    """Whether a pattern may stand for a name that begins so, as far as it is literal."""
    literal = head(glob)
    if literal == glob:
        return any(glob == one or (glob.startswith(one) and one[-1] == ":") for one in heads)
    return any(literal.startswith(one) or one.startswith(literal) for one in heads)


def overruled(rules: Sequence[Rule]) -> Iterator[tuple[str, Vain]]:
    """Name each rule that can never change a verdict, and the one that has said it all."""
    for number, rule in enumerate(rules):
        others = (*rules[:number], *(one for one in rules[number + 1 :] if _stronger(one, rule)))
        if not rule.shadow and (over := next((o for o in others if _covers(o, rule)), None)):
            what = f"expected a rule that can change a verdict: {over.name} ({over.says}) covers it"
            yield rule.name, Vain(("name",), what)


def _stronger(one: Rule, other: Rule) -> bool:
    return _STRENGTH[one.says] > _STRENGTH[other.says]


def _covers(one: Rule, other: Rule) -> bool:
    """Whether wherever one rule matches, another does, and says as much or more."""
    return (
        not one.shadow
        and _STRENGTH[one.says] >= _STRENGTH[other.says]
        and _names(one.callers, other.callers)
        and _names(one.tools, other.tools)
        and _names(one.sources, other.sources)
        and _holds(one.roles, other.roles)
        and _holds(one.edges, other.edges)
        and _holds(one.kinds, other.kinds)
        and _holds(one.tags, other.tags)
        and (one.risk is None or (other.risk is not None and other.risk >= one.risk))
        and one.mode in {None, other.mode}
        and _carries(one.labels, other.labels)
        and one.hours in {None, other.hours}
        and _as_true(one, other)
    )


def _names(one: Names, other: Names) -> bool:
    """Whether all names of one are among those of another."""
    wanted = other.wanted or ("*",)
    taken_out = all(_within(glob, other.unwanted) for glob in one.unwanted)
    return taken_out and (not one.wanted or all(_within(glob, one.wanted) for glob in wanted))


def _within(glob: str, others: Iterable[str]) -> bool:
    return any(within(glob, other) for other in others)


def _holds(one: frozenset[object], other: frozenset[object]) -> bool:
    return not one or (bool(other) and other <= one)


def _carries(one: Carried, other: Carried) -> bool:
    some = (
        not one.some
        or bool(other.every & one.some)
        or bool(other.some and other.some & one.some == other.some)
    )
    every = other.every & one.every == one.every
    return some and every and other.never & one.never == one.never


def _as_true(one: Rule, other: Rule) -> bool:
    """Whether one condition is true wherever another is: there is none, or it is the same."""
    if one.condition is None:
        return True
    return other.condition is not None and one.condition.text == other.condition.text
