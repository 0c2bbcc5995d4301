"""Peers who want too much, or are too slow: it is their loss alone."""

from __future__ import annotations

import http.client
import socket
from contextlib import ExitStack, closing, suppress
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.chaos.faults import Fault
from tests.faults.answers import replies
from tests.faults.daemon import SECONDS, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.chaos.ledger import Seen
    from tests.chaos.node import Node
    from tests.faults.daemon import Daemon

_NAMES = count(1)
_FLOODERS = 3
_MOST = 2000
_REFUSALS = 100
_ELSEWHERE = "127.0.0.2"
_HUNG_UP = 0


class Flood(Fault):
    """Who asks far more than its key allows, and who guesses keys from another address."""

    name = "a flood of requests, and guessed keys"

    def __init__(self, node: Node) -> None:
        self._node = node
        self._over = Event()
        self._threads: list[Thread] = []
        self._statuses: list[int] = []
        self._wrong: list[int] = []

    def begin(self) -> None:
        daemon = self._node.daemon
        body = {"name": f"flood-{next(_NAMES)}", "cells_per_minute": 100}
        key: str = daemon.ask("POST", "/api/keys", body).json["secret"]
        targets = [lambda: self._ask(daemon, key, {200, 429})] * _FLOODERS
        targets.append(lambda: self._ask(daemon, "a-guess", {401, 429}, _ELSEWHERE))
        self._threads = [Thread(target=target) for target in targets]
        for thread in self._threads:
            thread.start()

    def felt(self, seen: Sequence[Seen]) -> bool:
        del seen
        return self._statuses.count(429) >= _REFUSALS

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert self._wrong == []

    def _ask(self, daemon: Daemon, key: str, fine: set[int], address: str = "") -> None:
        source = (address, 0) if address else None
        connection = http.client.HTTPConnection(
            *daemon.address, timeout=SECONDS, source_address=source
        )
        with closing(connection):
            for _ in range(_MOST):
                if self._over.is_set():
                    return
                headers = daemon.headers({"Authorization": f"Bearer {key}"})
                connection.request("POST", "/api/tools/system_time/call", "{}", headers)
                answer = read(connection)
                self._statuses.append(answer.status)
                if answer.status not in fine or (
                    answer.status == 429 and "retry-after" not in answer.headers
                ):
                    self._wrong.append(answer.status)


class SlowPeers(Fault):
    """Who sends a head or a body byte by byte is cut off; who reads nothing holds up nobody."""

    name = "peers who send byte by byte, or never read"

    def __init__(self, node: Node, size: int = 30) -> None:
        self._node = node
        self._size = size
        self._stack = ExitStack()
        self._senders: list[tuple[socket.socket, Iterator[int]]] = []
        self._cut_off: list[int] = []
        self._over = Event()
        self._thread = Thread(target=self._drip)

    def begin(self) -> None:
        daemon = self._node.daemon
        request = daemon.request("POST", "/api/tools/system_time/call", body=bytes(1000))
        head, _, _ = request.partition(b"\r\n\r\n")
        for number in range(self._size):
            client = self._connect(daemon)
            sent = 0 if number % 2 else len(head) + 4
            client.sendall(request[:sent])
            self._senders.append((client, iter(request[sent:])))
        for _ in range(5):
            self._connect(daemon).sendall(daemon.request("GET", "/api/audit/export"))
        self._thread.start()

    def felt(self, seen: Sequence[Seen]) -> bool:
        del seen
        return len(self._cut_off) == self._size

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        self._stack.close()
        # What was said may be lost on its way to somebody who still sends.
        assert {408} <= set(self._cut_off) <= {408, _HUNG_UP}, self._cut_off

    def _connect(self, daemon: Daemon) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(daemon.address, SECONDS))

    def _drip(self) -> None:
        left = list(self._senders)
        while left and not self._over.wait(0.05):
            left = [one for one in left if not self._done(*one)]

    def _done(self, client: socket.socket, data: Iterator[int]) -> bool:
        """Send one byte more, unless there is an answer; true if there was."""
        try:
            found = client.recv(65_536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            with suppress(ConnectionError):  # what was said before is read the next time
                client.send(bytes([next(data)]))
            return False
        except ConnectionError:
            found = b""
        self._cut_off += [reply.status for reply in replies(found)] or [_HUNG_UP]
        return True


class Reloads(Fault):
    """Somebody changes the configuration all the time: well, badly, with a server more or less."""

    name = "changes of the configuration"

    def __init__(self, node: Node, extra: str, times: int = 6) -> None:
        self._node = node
        self._extra = extra
        self._times = times
        self._done = 0
        self._thread = Thread(target=self._change)
        self._wrong: list[tuple[int, int]] = []

    def begin(self) -> None:
        self._thread.start()

    def felt(self, seen: Sequence[Seen]) -> bool:
        del seen
        return self._done == self._times

    def end(self) -> None:
        self._thread.join()
        self._reload(self._node.config, 200)
        assert self._wrong == []

    def _change(self) -> None:
        whole = self._node.config
        changes: list[Callable[[], None]] = [
            lambda: self._reload(f"{whole}\n{self._extra}", 200),
            lambda: self._reload(f"{whole}\nnot toml [", 422),
            lambda: self._reload(
                whole.replace("no_progress = 1_000_000", "no_progress = 999"), 200
            ),
        ]
        for number in range(self._times):
            changes[number % len(changes)]()
            self._done += 1

    def _reload(self, config: str, status: int) -> None:
        self._node.write(config)
        found = self._node.daemon.ask("POST", "/api/config/reload").status
        if found != status:
            self._wrong.append((found, status))
