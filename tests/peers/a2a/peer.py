"""A foreign client in a process of its own, which is asked in lines."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faults.daemon import SECONDS
from tests.node import NODE
from tests.peers.a2a.house import PEERS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

PROGRAMS: Final = Path(__file__).with_name("programs")


@dataclass(frozen=True, slots=True)
class Kind:
    """A client: the program that speaks for it, and the version of the protocol that it speaks."""

    name: str
    version: str
    command: tuple[str, ...]

    @property
    def lists(self) -> bool:
        """Whether it can list tasks: the older protocol had no such thing."""
        return self.version == "1.0"

    @property
    def manages_pushes(self) -> bool:
        """Whether it can list and delete who is told."""
        return self.name != "python-0.3"


def _program(name: str) -> str:
    return str(PROGRAMS / name)


KINDS: Final = (
    Kind("python", "1.0", (sys.executable, _program("python.py"))),
    Kind("node", "1.0", (NODE, _program("node.mjs"))),
    Kind("python-0.3", "0.3", (str(PEERS / "a2a" / "bin" / "python"), _program("python03.py"))),
    Kind("node-0.3", "0.3", (NODE, _program("node03.mjs"))),
)
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")


class PeerError(Exception):
    """What the client raised."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["name"], error["message"])
        self.name: str = error["name"]
        self.code: int | None = error["code"]


@dataclass(slots=True)
class Peer:
    """The client at work; one thing at a time."""

    process: subprocess.Popen[bytes]
    key: str
    _unread: bytes = field(default=b"")

    def ask(self, op: str, params: Mapping[str, Any] | None = None, key: str = "") -> Any:
        """Let it do one thing, and give what it got; events come as a list."""
        events: list[Any] = []
        self._say(op, params, key)
        while True:
            match self._line():
                case {"event": event}:
                    events.append(event)
                case {"result": result}:
                    return events or result
                case {"error": error}:
                    raise PeerError(error)
                case line:
                    raise AssertionError(line)

    def stream(self, op: str, params: Mapping[str, Any], key: str = "") -> Generator[Any]:
        """Let it do one thing, and give the events as they come."""
        self._say(op, params, key)
        while "event" in (line := self._line()):
            yield line["event"]
        if "error" in line:
            raise PeerError(line["error"])

    def _say(self, op: str, params: Mapping[str, Any] | None, key: str) -> None:
        assert self.process.stdin
        asked = {"op": op, "params": params or {}, "key": key or self.key}
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout
        watch = select.poll()
        watch.register(self.process.stdout, select.POLLIN | select.POLLHUP)
        while b"\n" not in self._unread:
            assert watch.poll(SECONDS * 1000), "it never answered"
            more = os.read(self.process.stdout.fileno(), 1 << 20)
            assert more, "it has ended"
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)


@contextmanager
def peer(kind: Kind, binding: str, url: str, key: str) -> Generator[Peer]:
    """Start a client that finds the card under this address."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    packages = {"NODE_PATH": str(PEERS / "node-a2a" / "node_modules")}
    with subprocess.Popen(
        [*kind.command, url, binding],
        env={**kept, **packages},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            yield Peer(process, key)
        finally:
            process.kill()
