"""All pages of a list, as far as a list may reasonably go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import orjson

from openfang.protocols.mcp.errors import BadAnswer
from openfang.protocols.mcp.results import next_cursor
from openfang.sources.mcp.transport import LOG

MAX_PAGES: Final = 100
MAX_ENTRIES: Final = 10_000
MAX_BYTES: Final = 64_000_000

Page: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def list_all(page: Page, key: str) -> list[dict[str, Any]]:
    """Ask for pages until there is no next one; raise when that takes too many, or too much."""
    entries: list[dict[str, Any]] = []
    params: dict[str, str] = {}
    seen: set[str] = set()
    size = 0
    for _ in range(MAX_PAGES):
        result = await page(params)
        found = _entries(result, key)
        size += len(orjson.dumps(found))
        entries += found
        if len(entries) > MAX_ENTRIES or size > MAX_BYTES:
            raise BadAnswer(f"The list of {key} has {len(entries)} entries of {size} bytes so far")
        cursor = next_cursor(result)
        if cursor is None:
            return entries
        if cursor in seen:
            LOG.warning("The list of %s leads in a circle; it is taken to end there", key)
            return entries
        seen.add(cursor)
        params = {"cursor": cursor}
    raise BadAnswer(f"The list of {key} has more than {MAX_PAGES} pages")


def _entries(result: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = result.get(key)
    if not isinstance(found, list):
        raise BadAnswer(f"The answer holds no list of {key}")
    items = cast("list[object]", found)
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
