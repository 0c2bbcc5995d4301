"""All pages of a list, as far as a list may reasonably go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Final, TypeAlias, cast

import orjson

from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import BadAnswer
from openfang.protocols.mcp.results import next_cursor
from openfang.sources.mcp.transport import LOG

MAX_PAGES: Final = 100
MAX_ENTRIES: Final = 10_000
MAX_BYTES: Final = 64_000_000
MAX_SHOWN_BYTES: Final = 16_000_000

Page: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def list_all(page: Page, key: str) -> list[dict[str, Any]]:
    """Ask for pages until there is no next one; raise when that takes too many, or too much."""
    walk = _Walk(page, key, MAX_BYTES)
    await walk.go()
    return walk.entries


async def list_some(page: Page, key: str) -> list[dict[str, Any]]:
    """Ask for pages until there is no next one, or until it is enough: the rest is left out."""
    walk = _Walk(page, key, MAX_SHOWN_BYTES)
    try:
        await walk.go()
    except BadAnswer as wrong:
        if not walk.entries:
            raise
        LOG.warning("%s; the rest is left out", wrong.message)
    return walk.entries[:MAX_ENTRIES]


@dataclass(slots=True)
class _Walk:
    """A list on its way from the first page to the last."""

    page: Page
    key: str
    most_bytes: int
    entries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    size: int = 0

    async def go(self) -> None:
        """Ask for one page after the other."""
        params: dict[str, str] = {}
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            result = await self.page(params)
            self._take(_entries(result, self.key))
            cursor = next_cursor(result)
            if cursor is None:
                return
            if cursor in seen:
                LOG.warning("The list of %s leads in a circle; it is taken to end there", self.key)
                return
            seen.add(cursor)
            params = {"cursor": cursor}
        raise BadAnswer(f"The list of {self.key} has more than {MAX_PAGES} pages")

    def _take(self, found: list[dict[str, Any]]) -> None:
        self.size += len(orjson.dumps(found))
        count = len(self.entries) + len(found)
        if self.size <= self.most_bytes:
            self.entries += found
        if count > MAX_ENTRIES or self.size > self.most_bytes:
            raise BadAnswer(
                f"The list of {self.key} has {count} entries of {self.size} bytes so far"
            )


def _entries(result: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = result.get(key)
    if not isinstance(found, list):
        raise BadAnswer(f"The answer holds no list of {key}")
    items = cast("list[object]", found)
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
