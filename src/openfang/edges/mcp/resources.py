"""`resources/read`, and who wants to hear when one changes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import NotFound, OpenFangError
from openfang.core.session import NO_OPTIONS
from openfang.edges.mcp.client import options_of
from openfang.edges.mcp.greeting import PRIVATE
from openfang.edges.mcp.results import beside, check_fault
from openfang.protocols.mcp.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Part
    from openfang.edges.mcp.context import Context, Talk
    from openfang.edges.mcp.ports import Offer

_SHOWN: Final = 500


async def read(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Read one."""
    uri = _uri(params)
    try:
        result = check_fault(await context.offer.read(uri, options_of(params, context)))
    except NotFound as error:
        raise _not_found(uri, context) from error
    except RpcError as error:
        raise (_not_found(uri, context) if error.code == RESOURCE_NOT_FOUND else error) from error
    body = beside(result, context)
    body["contents"] = [_content(part, uri) for part in result.content]
    if context.modern:
        body.setdefault("ttlMs", 0)
        body["cacheScope"] = PRIVATE
    return body


def _content(part: Part, uri: str) -> dict[str, Any]:
    """Give what a part holds; what was said in its place (that it was cut) is text."""
    inner = part.get("resource")
    if isinstance(inner, dict):
        return cast("dict[str, Any]", inner)
    return {"uri": uri, "mimeType": "text/plain", "text": str(part.get("text", ""))}


def _not_found(uri: str, context: Context) -> RpcError:
    code = INVALID_PARAMS if context.modern else RESOURCE_NOT_FOUND
    return RpcError(code, "Resource not found", {"uri": uri[:_SHOWN]})


async def subscribe(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Tell this client of changes from now on."""
    uri, talk = _uri(params), context.talk
    if talk is None or not talk.lasting:
        raise RpcError(INVALID_PARAMS, "A single POST cannot be told anything later")
    if uri in talk.watched:
        return {}
    try:
        await context.offer.subscribe(uri, options_of(params, context))
    except NotFound as error:
        raise _not_found(uri, context) from error
    talk.watched.add(uri)
    return {}


async def unsubscribe(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Tell it no more."""
    uri, talk = _uri(params), context.talk
    if talk is not None and uri in talk.watched:
        talk.watched.discard(uri)
        await context.offer.unsubscribe(uri, options_of(params, context))
    return {}


async def unwatch(offer: Offer, talk: Talk) -> None:
    """Let go of all that a client watched: it has gone."""
    while talk.watched:
        with suppress(OpenFangError, RpcError):
            await offer.unsubscribe(talk.watched.pop(), NO_OPTIONS)


def _uri(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str) or not uri:
        raise RpcError(INVALID_PARAMS, "uri is missing, or no string")
    return uri
