"""Server-sent events, read as a browser reads them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import aiohttp
    from tests.edges.live import Live


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `number` is the last number that was seen with or before it."""

    kind: str
    number: int
    data: Any


@dataclass(slots=True)
class Stream:
    """An open stream."""

    response: aiohttp.ClientResponse
    last: int = -1

    async def _block(self) -> Event | None:
        """Wait for what ends with an empty line: an event, or a number alone."""
        fields: dict[str, str] = {}
        while line := (await self.response.content.readline()).decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
                continue
            self.last = int(fields.get("id", self.last))
            data = json.loads(fields["data"]) if "data" in fields else None
            return Event(fields.get("event", ""), self.last, data)
        return None

    async def next(self) -> Event | None:
        """Wait for the next event; none when the stream has ended."""
        while (event := await self._block()) and event.data is None:
            pass
        return event

    async def until(self, number: int) -> list[Event]:
        """Read on until this number was seen; health is left out."""
        found: list[Event] = []
        while self.last < number and (event := await self._block()):
            if event.kind not in {"", "health"}:
                found.append(event)
        return found

    async def rest(self) -> list[Event]:
        """Read on until it ends."""
        found: list[Event] = []
        while event := await self.next():
            found.append(event)
        return found


@asynccontextmanager
async def listening(
    node: Live, *, key: str | None = "", after: int | str | None = None
) -> AsyncGenerator[Stream]:
    """Listen, from now on or after a number."""
    headers = node.headers(key, {} if after is None else {"Last-Event-ID": str(after)})
    path = node.at("/api/events")
    async with node.web.get(path, headers=headers, read_bufsize=2**24) as response:
        assert response.status == 200, await response.read()
        assert response.content_type == "text/event-stream"
        stream = Stream(response)
        hello = await stream.next()
        assert hello is not None
        assert (hello.kind, hello.data) == ("health", {"status": "ok"})
        yield stream
