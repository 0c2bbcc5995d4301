"""What a token says, and what that opens: who its holder is here, and what its scopes grant."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from openfang.app.home.first_key import DEFAULT_PROJECT
from openfang.config.node import Holder as Terms
from openfang.core.calls import EVERYTHING, Caller, Grants, Mode, Role
from openfang.core.keys import Key, opened
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openfang.config.node import Issuer

_EDGES = ("api", "mcp", "a2a", "openai")
_RANKS = ("user", "auditor", "approver", "admin")
_MODES = ("planning", "execution")
_UNSAID = Terms()
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
    """Who holds a good token: somebody like the holder of a key, by another name.

    One without the scopes that are needed opens nothing (`enough`).
    """

    id: str
    key: Key
    enough: bool
    expires_at: int

    @property
    def bound(self) -> bool:
        """Whether it opens some toolsets or some agents only."""
        return self.enough and self.key.bound

    @property
    def toolsets(self) -> tuple[str, ...]:
        """Those that it opens, by name."""
        return self.key.toolsets

    @property
    def agents(self) -> tuple[str, ...]:
        """Those that it opens, by name."""
        return self.key.agents

    def opens(self, edge: str) -> bool:
        """Whether it is good for this edge."""
        return self.enough and edge in self.key.edges

    def caller(self) -> Caller:
        """Who calls with this token."""
        return replace(self.key.caller(), id=self.id)


def holder_of(said: Said, issuer: Issuer) -> Holder:
    """Say who holds a token, and what it opens on the operator's terms."""
    granted = [globs for scope, globs in issuer.grants.items() if scope in said.scopes]
    tools = dict.fromkeys(glob for globs in granted for glob in globs)
    name = _name(said.subject)
    terms = [terms for scope, terms in issuer.holders.items() if scope in said.scopes]
    grants = replace(EVERYTHING, tools=tuple(tools)) if issuer.grants else EVERYTHING
    required = said.scopes.issuperset(issuer.required_scopes)
    return Holder(
        id=f"oauth:{name}",
        key=_key(name, grants, terms or [_UNSAID]),
        enough=required and bool(granted or not issuer.grants),
        expires_at=said.expires_at,
    )


def _key(name: str, grants: Grants, terms: Sequence[Terms]) -> Key:
    """Join what each of somebody's scopes makes of them: who has two has what either opens."""
    opening = [opened(one.toolsets, one.agents) for one in terms]
    rates = [one.cells_per_minute for one in terms if one.cells_per_minute is not None]
    return Key(
        id="oauth",
        name=name,
        role=Role(max((one.role for one in terms), key=_RANKS.index)),
        edges=_union(one.edges or _EDGES for one in terms),
        toolsets=_union(toolsets for toolsets, _ in opening),
        agents=_union(agents for _, agents in opening),
        grants=grants,
        mode=Mode(max((one.mode for one in terms), key=_MODES.index)),
        projects=_union(one.projects or (DEFAULT_PROJECT,) for one in terms),
        cells_per_minute=max(rates, default=None),
    )


def _union(words: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for some in words for word in some))


def _name(subject: str) -> str:
    """Make a name of a subject that no other subject gets: workspace and memory go by it."""
    if _PLAIN.fullmatch(subject):
        return subject
    digest = sha256(subject.encode()).hexdigest()[:_DIGITS]
    return f"{_OTHERS.sub('_', subject)[:_SHOWN]}~{digest}"
