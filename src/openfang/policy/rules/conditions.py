"""Conditions: CEL expressions over a call, compiled once.

The library is loaded with the first condition: a node without any does not have it in memory.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openfang.core.tools import Risk
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cel_expr_python import cel

    from openfang.core.calls import Call
    from openfang.core.labels import Labels
    from openfang.core.tools import Tool

_SECOND: Final = 1_000_000_000
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_USE: Final = re.compile(r"""\bargs\b(?:\s*\.\s*(\w+)\b(?!\s*\()|\s*\[\s*(["'])(\w+)\2\s*\])?""")
_MISTAKE: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


class Facts(NamedTuple):
    """What a condition can read."""

    tool: Tool
    call: Call
    labels: Labels
    now: int


def _arguments(facts: Facts) -> dict[str, Any]:
    given = facts.call.arguments
    return given if isinstance(given, dict) else dict(given)


# Of each variable its type and where it comes from. A name with a dot is one variable: so a name
# that does not exist is a mistake when the file is loaded, not when a call is made.
_VARIABLES: Final[Mapping[str, tuple[str, Callable[[Facts], Any]]]] = {
    "args": ("map", _arguments),
    "caller.id": ("string", lambda facts: facts.call.caller.id),
    "caller.role": ("string", lambda facts: facts.call.caller.role.value),
    "tool.id": ("string", lambda facts: facts.tool.id),
    "tool.name": ("string", lambda facts: facts.tool.name),
    "tool.source": ("string", lambda facts: facts.tool.source),
    "tool.kind": ("string", lambda facts: facts.tool.kind.value),
    "tool.risk": ("int", lambda facts: int(facts.tool.risk)),
    "tool.tags": ("list", lambda facts: sorted(facts.tool.tags)),
    "tool.trust": ("string", lambda facts: facts.tool.trust.value),
    "tool.effect": ("string", lambda facts: facts.tool.sink.effect.value),
    "call.edge": ("string", lambda facts: facts.call.edge),
    "call.mode": ("string", lambda facts: facts.call.context.mode.value),
    "call.project": ("string", lambda facts: facts.call.context.project or ""),
    "call.task": ("string", lambda facts: facts.call.context.task_id or ""),
    "call.depth": ("int", lambda facts: facts.call.chain.depth),
    "call.ancestors": ("list", lambda facts: list(facts.call.chain.ancestors)),
    "call.root": ("string", lambda facts: facts.call.root),
    "labels": ("list", lambda facts: facts.labels.names),
    **{risk.name: ("int", lambda _, level=int(risk): level) for risk in Risk},
    "now": ("time", lambda facts: datetime.fromtimestamp(facts.now / _SECOND, UTC)),
}
VARIABLES: Final = {name: kind for name, (kind, _) in _VARIABLES.items()}
_READ: Final = {name: read for name, (_, read) in _VARIABLES.items()}


class BadCondition(ValueError):  # noqa: N818 - what it is called in messages
    """An expression that cannot be a condition; the text says what was expected."""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """One expression, compiled. `needs` are the variables that it may read, `args` which of them.

    None for `args` means that it may read any of the arguments.
    """

    text: str
    needs: frozenset[str]
    args: frozenset[str] | None
    program: cel.Expression

    def hold(self, given: cel.Activation | None) -> bool | None:
        """Whether it is true of a call; None if it cannot be said."""
        try:
            said = self.program.eval(given).value()
        except RuntimeError:  # it took too many steps
            return None
        return said if isinstance(said, bool) else None

    def failure(self, given: cel.Activation) -> str:
        """Say why it cannot be said, for the operator's eyes: it may quote an argument."""
        try:
            return str(self.program.eval(given).value())
        except RuntimeError as error:
            return str(error)


def compiled(text: str) -> Condition:
    """Compile an expression, or say what is wrong with it."""
    try:
        program = _environment().compile(text)
    except RuntimeError as error:
        raise BadCondition(f"a CEL expression ({_mistake(str(error))})") from None
    kind = program.return_type().name()
    if kind != "BOOL":
        raise BadCondition(f"an expression that is true or false, not of type {kind.lower()}")
    words = set(_WORD.findall(text))
    needs = frozenset(name for name in VARIABLES if name.rpartition(".")[2] in words)
    condition = Condition(text, needs, _used(text), program)
    if not needs and condition.hold(activation((), None)) is not True:
        raise BadCondition("an expression that can be true")
    return condition


def activation(needs: Iterable[str], facts: Facts | None) -> cel.Activation:
    """Give values to these variables; they are read once, however many conditions there are."""
    read = _READ
    given = {name: read[name](facts) for name in needs} if facts else {}
    return _environment().Activation(given)


def _used(text: str) -> frozenset[str] | None:
    """Name the arguments that are read; none if that cannot be told from the text."""
    found = [use[1] or use[3] for use in _USE.finditer(text)]
    return None if None in found else frozenset(found)


def _mistake(error: str) -> str:
    found = _MISTAKE.search(error)
    if found is None:
        return error.partition("\n")[0]
    what = found[3].removesuffix(" (in container '')")
    return f"line {found[1]}, column {found[2]}: {what}"


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    from cel_expr_python import cel  # noqa: PLC0415 - most homes have no conditions
    from cel_expr_python.ext import ext_strings  # noqa: PLC0415 - as above

    kinds = {
        "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
        "list": cel.Type.List(cel.Type.STRING),
        "string": cel.Type.STRING,
        "int": cel.Type.INT,
        "time": cel.Type.TIMESTAMP,
    }
    variables = {name: kinds[kind] for name, (kind, _) in _VARIABLES.items()}
    return cel.NewEnv(variables=variables, extensions=[ext_strings.ExtStrings()])
