"""What a token says, and what that opens: who its holder is here, and what its scopes grant."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from openfang.app.home.new import DEFAULT_PROJECT
from openfang.core.calls import EVERYTHING, Caller, Grants

if TYPE_CHECKING:
    from openfang.config.node import Issuer

_EDGES = frozenset({"api", "mcp", "a2a", "openai"})
_PLAIN = re.compile(r"[A-Za-z0-9._@|+-]{1,64}")
_OTHERS = re.compile(r"[^A-Za-z0-9._@|+-]+")
_SHOWN = 40
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Bad:
    """A token that is not taken, and why: in words that may be shown, with nothing of the token."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a good token says; `expires_at` is in nanoseconds, with what clocks may differ."""

    subject: str
    scopes: frozenset[str]
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a good token; one without the scopes that are needed opens nothing."""

    id: str
    grants: Grants
    enough: bool
    expires_at: int

    def opens(self, edge: str) -> bool:
        """Whether it is good for this edge."""
        return self.enough and edge in _EDGES

    def caller(self) -> Caller:
        """Who calls with this token."""
        return Caller(id=self.id, grants=self.grants, projects=(DEFAULT_PROJECT,))


def holder_of(said: Said, issuer: Issuer) -> Holder:
    """Say who holds a token, and what it opens on the operator's terms."""
    opened = [globs for scope, globs in issuer.grants.items() if scope in said.scopes]
    tools = dict.fromkeys(glob for globs in opened for glob in globs)
    return Holder(
        id=f"oauth:{_name(said.subject)}",
        grants=replace(EVERYTHING, tools=tuple(tools)) if issuer.grants else EVERYTHING,
        enough=said.scopes.issuperset(issuer.required_scopes) and bool(opened or not issuer.grants),
        expires_at=said.expires_at,
    )


def _name(subject: str) -> str:
    """Make a name of a subject that no other subject gets: workspace and memory go by it."""
    if _PLAIN.fullmatch(subject):
        return subject
    digest = sha256(subject.encode()).hexdigest()[:_DIGITS]
    return f"{_OTHERS.sub('_', subject)[:_SHOWN]}~{digest}"
