"""What a gate can say, and how a whole decision reads afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.tools import Tool


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Stop. `reason` is a stable sentence, `way_out` the command that would help."""

    reason: str
    code: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides. The question is stored, and bound to caller, tool and arguments."""

    reason: str
    code: str
    way_out: str = ""


Decision: TypeAlias = Allow | Deny | Ask
ALLOW = Allow()


@dataclass(frozen=True, slots=True)
class Verdict:
    """One gate's word on one call; `not_reached` after a refusal.

    `rules` are the operator's rules that led to it; a `shadow` is what another would have said.
    """

    gate: str
    verdict: str
    reason: str = ""
    code: str = ""
    way_out: str = ""
    rules: tuple[str, ...] = ()
    shadow: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The decision on a call that is not made: every step evaluated, nothing changed."""

    tool: Tool
    outcome: str
    verdicts: tuple[Verdict, ...]
    labels: list[str]
