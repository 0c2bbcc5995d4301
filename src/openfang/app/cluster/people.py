"""What people do with the nodes of a database: list them, drain them, and forget dead ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.app.auth.identify import require
from openfang.app.calling import Calling
from openfang.core.calls import Role
from openfang.core.errors import Conflict, NotFound
from openfang.core.events import NODE_CHANGED, Record
from openfang.core.values import dataclass
from openfang.core.wire import moment
from openfang.storage.members import drain, forget, forgotten, members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.storage.members import Member, Statement

_WAY_OUT: Final = "openfang nodes list"
_SECOND: Final = 1e9


@dataclass(frozen=True, slots=True)
class Gathering(Calling):
    """The nodes that share the database."""

    async def nodes(self) -> Sequence[Mapping[str, Any]]:
        """List them by name; of a home on a file there are none."""
        await require(self.parts, self.caller, Role.AUDITOR)
        return [node_body(one) for one in await members(self.parts.database)]

    async def change_node(self, node: str, act: str) -> Mapping[str, Any]:
        """Drain one, let it take work again, or remove one that is dead or has left."""
        await require(self.parts, self.caller)
        known = await self._member(node)
        try:
            await self.parts.broker.append([self._record(node, act)], _statements(known, act))
        except Conflict:
            raise _lives(node) from None
        left = [one for one in await members(self.parts.database) if one.node == node]
        return node_body(left[0] if left else known)

    async def _member(self, node: str) -> Member:
        found = [one for one in await members(self.parts.database) if one.node == node]
        if not found:
            raise NotFound(f"No node {node[:80]} shares this database.", way_out=_WAY_OUT)
        return found[0]

    def _record(self, node: str, act: str) -> Record:
        return Record(
            event=NODE_CHANGED,
            payload={"node": node, "act": act},
            context={"caller": self.caller.id},
        )


def _statements(known: Member, act: str) -> tuple[Statement, ...]:
    if act == "remove":
        return forget(known), *forgotten(known.node)
    if known.left:
        raise Conflict(f"The node {known.node} does not run.", way_out=_WAY_OUT)
    return (drain(known.node, on=act == "drain"),)


def _lives(node: str) -> Conflict:
    return Conflict(
        f"The node {node} is alive.", way_out=f"openfang nodes drain {node}; end it; remove it then"
    )


def node_body(one: Member) -> dict[str, Any]:
    """Describe one."""
    return {
        "node": one.node,
        "state": one.state,
        "address": one.address,
        "version": one.version,
        "schema": one.schema,
        "started_at": moment(one.started_at),
        "heard_secs": round(one.silent / _SECOND, 1),
    }
