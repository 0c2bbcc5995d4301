"""Requests that are long in being answered: each ends with its key and with the node.

Nobody's work ends with them: a task goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from openfang.edges.api.staying import Streams, in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from openfang.edges.api.mount import Came

_LOOK_SECONDS: Final = 1.0


class Stay:
    """One of them: it looks by itself whether it may stay, and else cancels who serves it.

    `beat` is called when it has been silent for long: it counts from when `silent` was last 0.
    """

    __slots__ = ("_every", "_serving", "_timer", "beat", "came", "ended", "silent")

    def __init__(self, came: Came, every: float) -> None:
        self.came = came
        self.ended = False
        self.silent = 0.0
        self.beat: Callable[[], None] | None = None
        self._every = every
        self._serving = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if not self.came.node.ready or not in_force(self.came):
            self.end()
            return
        self.silent += _LOOK_SECONDS
        if self.beat is not None and self.silent >= self._every:
            self.silent = 0.0
            self.beat()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def end(self) -> None:
        """End it, once."""
        if not self.ended and self._serving is not None:
            self.ended = True
            self._serving.cancel()

    def leave(self) -> None:
        """Look no longer."""
        self._timer.cancel()


class Staying:
    """All of them."""

    def __init__(self, most: int, every: float) -> None:
        self._streams = Streams(most)
        self._every = every
        self._open: dict[Stay, None] = {}
        self._over = False

    def __len__(self) -> int:
        return len(self._streams)

    @contextmanager
    def stay(self, came: Came) -> Generator[Stay]:
        """Let a request take its time."""
        stay = Stay(came, self._every)
        self._open[stay] = None
        try:
            if self._over:
                stay.end()
            yield stay
        finally:
            stay.leave()
            del self._open[stay]

    @contextmanager
    def stream(self, came: Came) -> Generator[Stay]:
        """Let a stream be open."""
        with self._streams.one(came.caller.id), self.stay(came) as stay:
            yield stay

    def end(self) -> None:
        """End all of them, and from now on each that comes."""
        self._over = True
        for stay in list(self._open):
            stay.end()
