"""What the A2A server is handed: which agents there are, for whom, and what becomes of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.calls import Caller
    from openfang.core.tasks import Tasks
    from openfang.core.trace import Chain


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Something that an agent says it can do."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An agent as it introduces itself."""

    name: str
    title: str
    description: str
    version: str
    skills: tuple[Skill, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How A2A is served: under which path of which address, and who answers by default.

    `merged` cards also have what older peers read. `primary` is the agent that is meant when none
    is named, if there is any. `require_chain` demands that a peer tells whose call it goes on with.
    """

    base: str
    path: str
    merged: bool
    primary: str | None
    require_chain: bool = False


class House(Protocol):
    """The node as A2A peers see it."""

    def settings(self) -> Settings | None:
        """How it is served now; nothing if it is not."""
        ...

    async def agents(self, caller: Caller | None) -> Sequence[Described]:
        """The agents that this caller may call, by name, with the skills that it may see.

        Without a caller: those that the operator publishes, as everybody may see them.
        """
        ...

    async def agent(self, name: str, caller: Caller | None) -> Described | None:
        """One of them by its name; nothing if it is not there for this caller."""
        ...

    async def knows(self, name: str, caller: Caller) -> bool:
        """Whether this caller may call the agent; every message asks."""
        ...

    def tasks(self, caller: Caller, chain: Chain) -> Tasks:
        """What this caller can do with tasks."""
        ...

    def sign(self, card: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sign a card as this node: a JWS over its canonical form, `{protected, signature}`."""
        ...

    def keys(self) -> Mapping[str, Any]:
        """The key that signatures are checked with, as a JWK set."""
        ...
