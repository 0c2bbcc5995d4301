"""Faults of one server out of twenty: the others must not notice."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.chaos.faults import Fault
from tests.chaos.ledger import OK
from tests.chaos.node import tool_of, until
from tests.chaos.processes import servers
from tests.chaos.upstream import DRIP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.ledger import Seen
    from tests.chaos.node import Node, WebServer

# What callers of a server are told that is not there: that it failed, that it is let rest for a
# while, or, without a word of its own for it, that there is no result.
_UNREACHABLE = frozenset({"source_failed", "timeout", "breaker_open", "is_error", "failed"})


class ToServer(Fault):
    """Something is done to one server."""

    kinds = _UNREACHABLE

    def __init__(self, node: Node, server: str) -> None:
        self.node = node
        self.touches = server

    def end(self) -> None:
        until(lambda: self.node.works(self.touches), what=lambda: self.name)


class Killed(ToServer):
    """`kill -9` of a child; `at` is when."""

    name = "kill -9 of a server"
    at: float

    def begin(self) -> None:
        os.kill(servers(self.node.daemon)[self.touches], signal.SIGKILL)
        self.at = time.monotonic()

    def felt(self, seen: Sequence[Seen]) -> bool:
        """Nobody need feel it: a call waits while the server is begun anew, which then answers."""
        return super().felt(seen) or any(self._is_back(one) for one in seen)

    def _is_back(self, seen: Seen) -> bool:
        return seen.server == self.touches and seen.answer == OK and seen.began > self.at


class Stopped(ToServer):
    """SIGSTOP of a child, until somebody has waited for it in vain."""

    name = "SIGSTOP of a server"

    def begin(self) -> None:
        self._pid = servers(self.node.daemon)[self.touches]
        os.kill(self._pid, signal.SIGSTOP)

    def end(self) -> None:
        with suppress(ProcessLookupError):  # the node may have given up on it
            os.kill(self._pid, signal.SIGCONT)
        super().end()


class ToWebServer(ToServer):
    """Something is done to a server over HTTP, whose process is ours."""

    @property
    def web(self) -> WebServer:
        return self.node.webs[self.touches]


class WebKilled(ToWebServer):
    """`kill -9` of it; somebody starts it again."""

    name = "kill -9 of a server over HTTP"

    def begin(self) -> None:
        self.web.kill()

    def end(self) -> None:
        self.web.start()
        super().end()


class WebStopped(ToWebServer):
    """SIGSTOP of it."""

    name = "SIGSTOP of a server over HTTP"

    def begin(self) -> None:
        self.web.process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self.web.process.send_signal(signal.SIGCONT)
        super().end()


class Dripping(ToServer):
    """A server that answers byte by byte: that takes its time, and is no error."""

    name = "a server answers byte by byte"
    kinds = frozenset()

    def __init__(self, node: Node, server: str) -> None:
        super().__init__(node, server)
        self._thread = Thread(target=self._ask)
        self._enough = Event()
        self.wrong: list[str] = []

    def begin(self) -> None:
        self._thread.start()

    def felt(self, seen: Sequence[Seen]) -> bool:
        del seen
        return self._enough.is_set()

    def end(self) -> None:
        self._thread.join()
        assert self.wrong == []
        super().end()

    def _ask(self) -> None:
        for number in range(5):
            text = f"{DRIP} {number}"
            answer = self.node.daemon.call(tool_of(self.touches), text=text).json
            if answer.get("content") != [{"type": "text", "text": text}]:
                self.wrong.append(str(answer))
        self._enough.set()
