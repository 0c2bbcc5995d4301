"""Nodes that share a database with a daemon, as its client asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.app.remote.addresses import segment
from openfang.app.remote.objects import an_object
from openfang.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.remote.asking import Asking

NODES: Final = "/api/nodes"


class RemoteNodes:
    """The nodes that share the database."""

    __slots__ = ()
    daemon: Asking

    async def nodes(self) -> Sequence[Mapping[str, Any]]:
        """List them by name."""
        return await self.daemon.get(NODES, _all)

    async def change_node(self, node: str, act: str) -> Mapping[str, Any]:
        """Drain one, let it take work again, or remove one that is dead or has left."""
        if not node:
            raise NotFound("No node without a name.", way_out="openfang nodes list")
        path = f"{NODES}/{segment(node)}"
        if act == "remove":
            return await self.daemon.act("DELETE", path, an_object)
        return await self.daemon.act("POST", f"{path}/{act}", an_object, {})


def _all(body: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401 - any JSON
    return [an_object(one) for one in body["nodes"]]
