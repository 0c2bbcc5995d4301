"""Calls as they come, for all who watch: the log is read, and each row drawn, once."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import anyio

from openfang.core.bookmarks import START, read_bookmark
from openfang.core.calls import Role
from openfang.core.watching import CallFilter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from openfang.core.bookmarks import Bookmark
    from openfang.core.calls import Caller
    from openfang.core.watching import SeenCall
    from openfang.edges.web.asking import Ask
    from openfang.edges.web.ports import Watch

_PAUSE: Final = 0.5
_KEPT: Final = 400
_BEAT_TICKS: Final = 30
_STILL_TICKS: Final = 4
_OF_ALL: Final = ""
_EVERYTHING: Final = CallFilter()


class _Row:
    """A call, and its row once somebody needed it."""

    __slots__ = ("call", "html")

    def __init__(self, call: SeenCall) -> None:
        self.call = call
        self.html = b""

    def drawn(self, ask: Ask) -> bytes:
        if not self.html:
            text = ask.draw(
                "_row.html", {"c": self.call, "fresh": True, "several": ask.watch.several}
            )
            lines = text.encode(errors="replace").split(b"\n")
            self.html = b"".join(b"data: %b\n" % line for line in lines if line)
        return self.html


class _Channel:
    """What was last seen of one kind of view. Whoever looks first reads for the others."""

    def __init__(self, watch: Watch, caller: Caller) -> None:
        self._watch, self._caller = watch, caller
        self._rows: OrderedDict[str, _Row] = OrderedDict()
        self._blocks: dict[str, bytes] = {}
        self._reading = anyio.Lock()
        self._read_at = 0.0
        self._last: Bookmark | None = None
        self.watchers = 0

    async def look(self) -> None:
        """Read on, unless somebody has just done so."""
        async with self._reading:
            now = anyio.current_time()
            if now - self._read_at < _PAUSE * 0.9:
                return
            # Who comes after a pause sees what was on the page already, and nothing twice.
            fresh = now - self._read_at > 4 * _PAUSE
            calls, newest = await self._watch.newer(self._caller, None if fresh else self._last)
            self._read_at, self._last = anyio.current_time(), newest
            self._blocks.clear()
            for call in reversed(calls):
                self._rows.pop(call.id, None)
                self._rows[call.id] = _Row(call)
            while len(self._rows) > _KEPT:
                self._rows.popitem(last=False)

    async def start(self) -> Bookmark:
        """Say where somebody who comes now begins."""
        await self.look()
        return self.last

    @property
    def last(self) -> Bookmark:
        return self._last or START

    def since(self, after: Bookmark, wanted: CallFilter, ask: Ask) -> bytes:
        """Give what came after a record, oldest first; all who want everything get the same."""
        if wanted != _EVERYTHING:
            return b"".join(
                row.drawn(ask) for row in self._newer(after) if matches(row.call, wanted)
            )
        place = str(after)
        if place not in self._blocks:
            self._blocks[place] = b"".join(row.drawn(ask) for row in self._newer(after))
        return self._blocks[place]

    def _newer(self, after: Bookmark) -> list[_Row]:
        rows = self._rows.values()
        return [row for row in rows if not after.has(row.call.keeper, row.call.audit)]


_channels: WeakKeyDictionary[Watch, dict[str, _Channel]] = WeakKeyDictionary()


@contextmanager
def _channel(ask: Ask) -> Generator[_Channel]:
    """Share what is seen with those of the same view; the last one to go takes it along."""
    view = _OF_ALL if ask.may(Role.AUDITOR) else ask.caller.id
    of_watch = _channels.setdefault(ask.watch, {})
    channel = of_watch.setdefault(view, _Channel(ask.watch, ask.caller))
    channel.watchers += 1
    try:
        yield channel
    finally:
        channel.watchers -= 1
        if not channel.watchers:
            of_watch.pop(view, None)


def _begin(ask: Ask, newest: Bookmark) -> Bookmark:
    """Begin where the browser says that it was, or with what comes now."""
    last = read_bookmark(ask.came.headers.get(b"last-event-id", b"").decode("latin-1"))
    return newest if last is None else last.at(newest)


def matches(call: SeenCall, wanted: CallFilter) -> bool:
    """Whether a call is among those that are wanted."""
    told = f"{call.tool} {call.caller} {call.reason} {call.trace} {call.id}"
    return (
        wanted.verdict in {"", call.verdict}
        and wanted.caller in {"", call.caller}
        and wanted.edge in {"", call.edge}
        and call.tool.startswith(wanted.source)
        and wanted.text in told
    )


async def follow(ask: Ask, wanted: CallFilter) -> AsyncGenerator[bytes]:
    """Stream rows, as server-sent events, until the key or the node ends."""
    came = ask.came
    with came.node.place(ask.caller), _channel(ask) as channel:
        after, ticks = _begin(ask, await channel.start()), 0
        yield b"retry: 2000\n: begun\n\n"
        while came.node.ready and (ticks % _STILL_TICKS or came.still()):
            await anyio.sleep(_PAUSE)
            ticks += 1
            await channel.look()
            rows = channel.since(after, wanted, ask)
            after = channel.last
            if rows:
                yield b"id: %b\nevent: rows\n%b\n" % (str(after).encode(), rows)
            elif ticks % _BEAT_TICKS == 0:
                yield b": still there\n\n"
