"""Callers who call without end, each in a thread of its own, and who can be asked to be quiet."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from itertools import cycle
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Self

from tests.chaos.ledger import Answer, Seen
from tests.chaos.node import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from tests.chaos.ledger import Ledger
    from tests.chaos.ways import Way

_BETWEEN_CALLS = 0.04
_BETWEEN_TRIES = 0.2
_MOST_SECONDS = 120


class Load:
    """Each way calls all servers in turn; what it was told is in the ledger.

    `broken` is what a way itself could not make sense of.
    """

    def __init__(self, ways: Sequence[Way], ledger: Ledger) -> None:
        self._ways = ways
        self._ledger = ledger
        self._threads = [
            Thread(target=self._run, args=(number, way)) for number, way in enumerate(ways)
        ]
        self._stop, self._go = Event(), Event()
        self._resting = 0
        self._changed = Condition()
        self.broken: list[str] = []

    def __enter__(self) -> Self:
        self._go.set()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._go.set()
        for thread in self._threads:
            thread.join()
        with ExitStack() as stack:
            for way in self._ways:
                stack.callback(way.close)

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Nobody calls, and nobody is connected who need not be."""
        self._go.clear()
        self.wait_until(self._all_rest, "somebody never came back")
        yield
        self._go.set()

    def wait_until(self, seen: Callable[[], bool], what: str = "") -> None:
        """Look after each call whether it is so."""
        with self._changed:
            assert self._changed.wait_for(seen, _MOST_SECONDS), (what, self.broken)

    def wait_for_calls(self, calls: int) -> None:
        """Wait until so many more went well."""
        enough = len(self._ledger.acknowledged) + calls
        self.wait_until(lambda: len(self._ledger.acknowledged) >= enough, "nobody is answered")

    def _all_rest(self) -> bool:
        return self._resting == len(self._threads) - len(self.broken)

    def _run(self, number: int, way: Way) -> None:
        try:
            for turn, server in enumerate(cycle(SERVERS[number:] + SERVERS[:number])):
                if not self._go.is_set():
                    self._rest(way)
                if self._stop.wait(_BETWEEN_CALLS):
                    return
                self._call(way, server, f"{way.name}-{number}-{turn}")
        except Exception as error:  # noqa: BLE001 - told at the end, and the others go on
            self.broken.append(f"{way.name}: {type(error).__name__}: {error}")
            with self._changed:
                self._changed.notify_all()

    def _rest(self, way: Way) -> None:
        way.rest()
        with self._changed:
            self._resting += 1
            self._changed.notify_all()
        self._go.wait()
        with self._changed:
            self._resting -= 1

    def _call(self, way: Way, server: str, words: str) -> None:
        began = time.monotonic()
        try:
            answer = way.call(server, words)
        except (OSError, HTTPException) as error:
            answer = Answer("unanswered", f"{type(error).__name__}: {error}")
            self._stop.wait(_BETWEEN_TRIES)
        seen = Seen(way=way.name, server=server, answer=answer, began=began, ended=time.monotonic())
        with self._changed:
            self._ledger.note(seen, words)
            self._changed.notify_all()
