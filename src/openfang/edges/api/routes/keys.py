"""`/api/keys`: named keys and admin tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.keys import Key
from openfang.core.wire import key_body, read_key
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import Answer, json_answer

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Asked


async def _list(asked: Asked) -> Answer:
    now = asked.node.now()
    bodies = [key_body(key, now) for key in await asked.session.keys()]
    return json_answer({"keys": bodies, "total": len(bodies)})


async def _create(asked: Asked) -> Answer:
    wanted, ttl = read_key(asked.body), asked.body.get("ttl_secs")
    if isinstance(wanted, Key):
        made, secret = await asked.session.create_key(wanted, ttl=ttl)
    else:
        made, secret = await asked.session.create_token(wanted, ttl=ttl)
    return json_answer({**key_body(made, asked.node.now()), "secret": secret}, 201)


async def _revoke(asked: Asked) -> Answer:
    ended = await asked.session.revoke_key(asked.path["name"])
    return json_answer(key_body(ended, asked.node.now()))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/keys",
        name="list_keys",
        summary="List keys and admin tokens, never their secrets.",
        handle=_list,
        access=Access.ADMIN,
        answers={200: "Keys"},
        problems=(403,),
    ),
    Endpoint(
        method="POST",
        path="/api/keys",
        name="create_key",
        summary="Make a key or an admin token; its secret is shown this once.",
        handle=_create,
        access=Access.ADMIN,
        body=schemas.NEW_KEY,
        answers={201: "NewKey"},
        problems=(403, 404, 409, 422),
    ),
    Endpoint(
        method="DELETE",
        path="/api/keys/{name}",
        name="revoke_key",
        summary="End a key or an admin token, by name or id.",
        handle=_revoke,
        access=Access.ADMIN,
        answers={200: "Key"},
        problems=(403, 404, 409),
    ),
)
