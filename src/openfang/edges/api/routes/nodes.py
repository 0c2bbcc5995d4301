"""`/api/nodes`: the nodes that share a database, and what the operator says of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import json_answer

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked

_ALL: Final = "/api/nodes"
_ONE: Final = f"{_ALL}/{{name}}"


async def _list(asked: Asked) -> Answer:
    found = await asked.session.nodes()
    return json_answer({"nodes": list(found), "total": len(found)})


async def _act(act: str, asked: Asked) -> Answer:
    return json_answer(await asked.session.change_node(asked.path["name"], act))


def _acting(act: str, summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"{_ONE}/{act}",
        name=f"{act}_node",
        summary=summary,
        handle=partial(_act, act),
        access=Access.ADMIN,
        body={"type": "object", "additionalProperties": False},
        answers={200: "Node"},
        problems=(403, 404, 409, 422),
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_ALL,
        name="list_nodes",
        summary="List the nodes that share the database, by name; on a file there are none.",
        handle=_list,
        access=Access.AUDITOR,
        answers={200: "Nodes"},
        problems=(403,),
    ),
    _acting("drain", "Let one take nothing new; what it works on ends first."),
    _acting("resume", "Let one that drains take work again."),
    Endpoint(
        method="DELETE",
        path=_ONE,
        name="remove_node",
        summary="Forget one that is dead or has left; its chain stays in the log.",
        handle=partial(_act, "remove"),
        access=Access.ADMIN,
        answers={200: "Node"},
        problems=(403, 404, 409, 422),
    ),
)
