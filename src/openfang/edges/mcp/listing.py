"""The lists: page by page, in the words of the client's revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from openfang.edges.mcp.greeting import LIST_SECONDS, PRIVATE
from openfang.edges.mcp.results import STRUCTURED_SINCE
from openfang.protocols.hops.path import VIA, passed_on
from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openfang.edges.mcp.context import Context
    from openfang.edges.mcp.ports import Offered

T = TypeVar("T")
PAGE: Final = 1000
_ANNOTATED_SINCE: Final = "2025-03-26"


async def tools(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """List the tools that this client may call."""
    await context.offer.settled()
    return _page("tools", context.offer.tools(), params, context, _tool)


async def resources(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """List the resources."""
    await context.offer.settled()
    return _page("resources", context.offer.resources(), params, context, _as_it_is)


async def templates(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """List the templates of resources."""
    await context.offer.settled()
    return _page("resourceTemplates", context.offer.templates(), params, context, _as_it_is)


async def prompts(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """List the prompts."""
    await context.offer.settled()
    return _page("prompts", context.offer.prompts(), params, context, _as_it_is)


def _page(
    key: str,
    entries: Sequence[T],
    params: Mapping[str, Any],
    context: Context,
    write: Callable[[T, Context], Mapping[str, Any]],
) -> dict[str, Any]:
    begin = _begin(params.get("cursor"), len(entries))
    shown = entries[begin : begin + PAGE]
    body: dict[str, Any] = {key: [write(entry, context) for entry in shown]}
    if begin + PAGE < len(entries):
        body["nextCursor"] = str(begin + PAGE)
    if context.modern:
        body |= {"ttlMs": LIST_SECONDS * 1000, "cacheScope": PRIVATE}
    return body


def _begin(cursor: object, count: int) -> int:
    """Read our own cursor; a list that became shorter meanwhile ends."""
    if cursor is None:
        return 0
    if not isinstance(cursor, str) or not (cursor.isascii() and cursor.isdigit()):
        raise RpcError(INVALID_PARAMS, "cursor is none of ours")
    begin = int(cursor[:_DIGITS])
    if begin % PAGE or not begin:
        raise RpcError(INVALID_PARAMS, "cursor is none of ours")
    return min(begin, count)


_DIGITS: Final = 12


def _tool(offered: Offered, context: Context) -> dict[str, Any]:
    tool, version = offered.tool, context.version
    entry: dict[str, Any] = {
        "name": offered.name,
        "description": offered.description,
        "inputSchema": tool.input_schema,
    }
    if tool.annotations and version >= _ANNOTATED_SINCE:
        entry["annotations"] = tool.annotations
    if version >= STRUCTURED_SINCE:
        if tool.title:
            entry["title"] = tool.title
        if tool.output_schema is not None:
            entry["outputSchema"] = tool.output_schema
        entry["_meta"] = {VIA: [*tool.via, context.offer.by]}
    return entry


def _as_it_is(entry: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
    return passed_on(entry, context.offer.by) if context.version >= STRUCTURED_SINCE else entry
