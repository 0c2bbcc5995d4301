"""What people do with memories: list, search, read and forget them, each in a space of their own.

It is the space of their own calls, or that of an agent for them. An administrator names any space.
Who has no role sees of it what their key's `memory_read` covers, and forgets by `memory_write`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from openfang.app.agents.guests import memory_space
from openfang.app.agents.roster import agent_body
from openfang.app.auth.identify import require
from openfang.core.errors import Conflict, NotFound
from openfang.core.events import MEMORY_FORGOTTEN, Record
from openfang.core.values import dataclass
from openfang.core.wire import memory_body
from openfang.policy.globs import matches
from openfang.storage.memory import MemoryStore, Sought, forget_one

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.core.memory import Memory, Wanted

T = TypeVar("T")
_ALL: Final = ("*",)
_NEWEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """The memories of one space, as one caller may see them."""

    parts: Parts
    caller: Caller
    space: str

    async def found(self, wanted: Wanted) -> Mapping[str, Any]:
        """List the newest, or find some by their words."""
        return await (self._search(wanted) if wanted.query else self._page(wanted))

    async def _page(self, wanted: Wanted) -> Mapping[str, Any]:
        before, limit = wanted.after or _NEWEST, wanted.limit
        found = await self._read(
            lambda store: store.page(self.space, self._readable, before=before, limit=limit + 1)
        )
        return self._body(found[:limit], found[limit - 1].id if found[limit:] else None)

    async def _search(self, wanted: Wanted) -> Mapping[str, Any]:
        sought = Sought(
            space=self.space, query=wanted.query, limit=wanted.limit, granted=self._readable
        )
        return self._body(await self._read(lambda store: store.search(sought)), None)

    async def show(self, key: str) -> Mapping[str, Any]:
        """Read one, whole."""
        return self._shown(await self._find(key, self._readable))

    async def forget(self, key: str) -> Mapping[str, Any]:
        """Forget one, on record."""
        found = await self._find(key, self._writable)
        payload = {"space": self.space, "key": self.parts.redactor.text(key).text}
        record = Record(event=MEMORY_FORGOTTEN, payload=payload, context={"caller": self.caller.id})
        await self.parts.broker.append([record], forget_one(self.space, key))
        return self._shown(found)

    async def _read(self, look: Callable[[MemoryStore], Coroutine[Any, Any, T]]) -> T:
        """Look aside: there may be many, and they may be long."""
        return await self.parts.database.aside(lambda reader: look(MemoryStore(reader)))

    @property
    def _readable(self) -> tuple[str, ...]:
        return _ALL if self.caller.admin else self.caller.grants.memory_read

    @property
    def _writable(self) -> tuple[str, ...]:
        return _ALL if self.caller.admin else self.caller.grants.memory_write

    async def _find(self, key: str, granted: tuple[str, ...]) -> Memory:
        found = await self._read(lambda store: store.get(self.space, key))
        if found is None or not matches(granted, key):
            raise NotFound(f"Nothing is remembered under {key}.", way_out="openfang memory list")
        return found

    def _body(self, found: Sequence[Memory], after: int | None) -> Mapping[str, Any]:
        shown = [self._shown(one) for one in found if matches(self._readable, one.key)]
        return {"space": self.space, "memories": shown, "after": after}

    def _shown(self, memory: Memory) -> dict[str, Any]:
        """Show one as the tool would: without what is secret."""
        return self.parts.redactor.tree(memory_body(memory))


async def memories_of(parts: Parts, caller: Caller, wanted: Wanted) -> Memories:
    """Open a caller's own space, that of an agent for them or, for an administrator, any."""
    agent, space = wanted.agent, wanted.space
    if agent and space:
        raise Conflict(
            f"Of the agent {agent} and the space {space} only one can be looked into.",
            way_out="leave one of them out",
        )
    if space and space != caller.space:
        await require(parts, caller)
    own = await _of_agent(parts, caller, agent) if agent else space or caller.space
    return Memories(parts=parts, caller=caller, space=own)


async def _of_agent(parts: Parts, caller: Caller, name: str) -> str:
    """Name the space of an agent for this caller; one that all share is an administrator's."""
    await agent_body(parts, caller, name)
    assert parts.agents  # noqa: S101 - there is such an agent
    spec = (await parts.agents.opened()).running[name].spec
    if spec.shares_memory:
        await require(parts, caller)
        return memory_space(spec)
    return f"{memory_space(spec)}/{caller.id}"
