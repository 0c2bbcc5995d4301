"""`/api/held`: what others say of themselves that waits for a person, and the person's yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import Answer, json_answer
from openfang.edges.api.held import ACCEPT, HELD_QUERY

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Asked


async def _list(asked: Asked) -> Answer:
    found = await asked.session.held(asked.query.get("source", ""))
    return json_answer({"held": list(found), "total": len(found)})


async def _accept(asked: Asked) -> Answer:
    digest = asked.body.get("digest", "")
    return json_answer(await asked.session.accept(asked.path["id"], digest))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/held",
        name="list_held",
        summary="What is held back of what others say of themselves, with changes and findings.",
        handle=_list,
        access=Access.AUDITOR,
        query=HELD_QUERY,
        answers={200: "AllHeld"},
        problems=(403,),
    ),
    Endpoint(
        method="POST",
        path="/api/held/{id}/accept",
        name="accept_held",
        summary="Take what is held back as it is now; with a digest, only if it is still that.",
        handle=_accept,
        access=Access.ADMIN,
        body=ACCEPT,
        answers={200: "Held"},
        problems=(403, 404, 409, 422),
    ),
)
