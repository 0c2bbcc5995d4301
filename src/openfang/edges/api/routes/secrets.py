"""`/api/secrets`: what servers refer to by name. Values come in, and never go out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.servers import NEW_SECRET

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked

_ONE = "/api/secrets/{name}"


async def _list(asked: Asked) -> Answer:
    found = await asked.session.secrets()
    return json_answer({"secrets": found, "total": len(found)})


async def _set(asked: Asked) -> Answer:
    return json_answer(await asked.session.set_secret(asked.path["name"], asked.body["value"]))


async def _remove(asked: Asked) -> Answer:
    force = asked.query.get("force", False)
    return json_answer(await asked.session.remove_secret(asked.path["name"], force=force))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/secrets",
        name="list_secrets",
        summary="Names that are stored, and those that servers miss; never a value.",
        handle=_list,
        access=Access.ADMIN,
        answers={200: "Secrets"},
        problems=(403,),
    ),
    Endpoint(
        method="PUT",
        path=_ONE,
        name="set_secret",
        summary="Store or replace a secret; servers that refer to it get it at once.",
        handle=_set,
        access=Access.ADMIN,
        body=NEW_SECRET,
        answers={200: "Secret"},
        problems=(403, 422),
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        name="remove_secret",
        summary="Delete a secret; one that a server refers to only with `force=true`.",
        handle=_remove,
        access=Access.ADMIN,
        query={"force": {"type": "boolean"}},
        answers={200: "Secret"},
        problems=(403, 404, 409),
    ),
)
