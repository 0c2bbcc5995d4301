"""`/api/specs`: frozen plans."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

from openfang.core.errors import Rejected
from openfang.core.wire import spec_body
from openfang.edges.api import schemas
from openfang.edges.api.endpoint import Access, Endpoint
from openfang.edges.api.exchange import MAX_BODY, Answer, json_answer

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Asked


async def _list(asked: Asked) -> Answer:
    found = await asked.session.specs()
    return json_answer({"specs": [spec_body(spec) for spec in found], "total": len(found)})


async def _freeze(asked: Asked) -> Answer:
    body = asked.body
    spec = await asked.session.freeze_spec(
        body["name"], _content(body), body.get("project", "default")
    )
    return json_answer(spec_body(spec), 201)


def _content(body: dict[str, Any]) -> bytes:
    if "content" in body:
        return body["content"].encode()
    content = b64decode(body["content_base64"])
    if not content.strip():
        raise Rejected(
            "The spec is empty: there is no plan in it.",
            status=422,
            rule="body",
            way_out="write down what is meant",
        )
    return content


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/specs",
        name="list_specs",
        summary="List the frozen plans.",
        handle=_list,
        answers={200: "Specs"},
    ),
    Endpoint(
        method="POST",
        path="/api/specs",
        name="freeze_spec",
        summary="Freeze a plan: calls that name its hash may use risky tools.",
        handle=_freeze,
        access=Access.ADMIN,
        body=schemas.NEW_SPEC,
        largest=MAX_BODY,
        answers={201: "Spec"},
        problems=(403, 409, 422),
    ),
)
