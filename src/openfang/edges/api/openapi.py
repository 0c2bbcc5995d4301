"""The OpenAPI document, written from the same table that the checks read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from openfang.edges.api import (
    agents,
    held,
    installs,
    memory,
    nodes,
    schedules,
    schemas,
    servers,
    sessions,
    tasks,
    usage,
)
from openfang.edges.api.endpoint import Access, Endpoint, Text
from openfang.edges.api.exchange import Answer
from openfang.edges.api.meanings import IN_PATH, IN_QUERY, described, meaning
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.edges.api.exchange import Asked

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_ALWAYS = (400, 403, 408, 413, 414, 415, 421, 429, 431, 500, 503)
_OK = 200
_WORTH_ANOTHER_TRY = (429, 503)
_WORDS = {
    202: "A question waits for a person; send the identical call again when it is answered.",
    400: "The request is malformed.",
    401: "There is no key or token, or none that is known.",
    403: "It may not be done; the problem names the rule and the way out.",
    404: "There is no such thing, or none that this caller may see.",
    408: "It did not arrive in time.",
    409: "It contradicts what is there.",
    413: "The body is too large.",
    414: "The address is too long.",
    415: "The body is not plain JSON.",
    421: "The Host is no name of this node.",
    422: "The body or the arguments do not fit.",
    429: "Too much, too often, or broken on the other side; see Retry-After.",
    431: "The head is too large.",
    500: "It failed for a reason that stands in the log of the node.",
    503: "It cannot be recorded or the token not be checked now, there is no room, or the node is "
    "ending: it was not done.",
}
_LEFT = {
    "RateLimit-Remaining": ("Cells that are left of the rate.", 0),
    "RateLimit-Reset": ("Seconds until the rate is whole again.", 0),
}
_WAIT = {"Retry-After": ("Seconds after which it is worth another try.", 1)}


def with_document(endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """Add the endpoint that shows the document of them all, itself included."""

    @lru_cache(maxsize=1)
    def written() -> Answer:
        return Answer(body=orjson.dumps(document(table)))

    async def show(asked: Asked) -> Answer:
        del asked
        return written()

    own = Endpoint(
        method="GET",
        path="/api/openapi.json",
        name="openapi",
        summary="This document.",
        handle=show,
        answers={200: {"type": "object"}},
    )
    table = (*endpoints, own)
    return table


def document(endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    """Write the whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = _PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "OpenFang",
            "version": __version__,
            "description": (
                "One governed path between agents, their tools and the world. A path answers "
                "methods that it does not list with 405 and `Allow`; HEAD is GET without the body."
            ),
        },
        "paths": paths,
        "components": {
            "schemas": {
                **schemas.COMPONENTS,
                **servers.COMPONENTS,
                **held.COMPONENTS,
                **installs.COMPONENTS,
                **agents.COMPONENTS,
                **sessions.COMPONENTS,
                **memory.COMPONENTS,
                **schedules.COMPONENTS,
                **nodes.COMPONENTS,
                **usage.COMPONENTS,
                **tasks.COMPONENTS,
            },
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": f"Requires: {endpoint.access.value}.",
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint),
        "security": [] if endpoint.access is Access.PUBLIC else [{"key": []}, {"header": []}],
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": described(endpoint.name, endpoint.body)}}
        needed = not _takes_nothing(endpoint.body)
        operation["requestBody"] = {"required": needed, "content": content}
    return operation


def _takes_nothing(body: schemas.Schema) -> bool:
    """Whether an empty body is as good as an empty object."""
    return body.get("required") == []


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    named = _PARAMETER.findall(endpoint.path)
    in_path = [
        _parameter(name, "path", {"type": "string", "minLength": 1}, IN_PATH[name])
        for name in named
    ]
    in_query = [
        _parameter(name, "query", schema, meaning(endpoint.name, name, IN_QUERY))
        for name, schema in endpoint.query.items()
    ]
    in_head = [
        _parameter(name, "header", {"type": "string"}, text)
        for name, text in endpoint.headers.items()
    ]
    return in_path + in_query + in_head


def _parameter(name: str, place: str, schema: schemas.Schema, text: str) -> dict[str, Any]:
    required = place == "path"
    return {"name": name, "in": place, "required": required, "schema": schema, "description": text}


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    with_key = () if endpoint.access is Access.PUBLIC else (401,)
    found = {status: _problem(status) for status in (*_ALWAYS, *with_key, *endpoint.problems)}
    for status, answer in endpoint.answers.items():
        response = _response(status, answer)
        refused = found.get(status, response)
        found[status] = {**response, "content": {**refused["content"], **response["content"]}}
    if endpoint.streams is not None:
        kind, schema = _content(endpoint.streams)
        found[_OK]["content"][kind] = {"schema": schema}
    return {str(status): found[status] for status in sorted(found)}


def _problem(status: int) -> dict[str, Any]:
    more = _WAIT if status in _WORTH_ANOTHER_TRY else {}
    return {
        "description": _WORDS[status],
        "headers": _headers(_LEFT | more),
        "content": {"application/problem+json": {"schema": schemas.ref("Problem")}},
    }


def _response(status: int, answer: schemas.Schema | Text | str) -> dict[str, Any]:
    if answer == "Problem":
        return _problem(status)
    kind, schema = _content(answer)
    return {
        "description": "As asked.",
        "headers": _headers(_LEFT),
        "content": {kind: {"schema": schema}},
    }


def _content(answer: schemas.Schema | Text | str) -> tuple[str, schemas.Schema]:
    match answer:
        case Text(content_type, schema):
            return content_type, schema
        case str(name):
            return "application/json", schemas.ref(name)
        case schema:
            return "application/json", schema


def _headers(named: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
    return {
        name: {"description": text, "schema": {"type": "integer", "minimum": least}}
        for name, (text, least) in named.items()
    }
