"""Peers that are real: children that speak the protocol, and an ear that hears what they say."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from openfang.host.process import Launch
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.protocols.mcp.meta import ClientInfo
from openfang.sources.mcp.connection import Connection, open_connection
from openfang.sources.mcp.stdio import open_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from openfang.protocols.mcp.results import Question
    from openfang.sources.mcp.greeting import Era
    from openfang.sources.mcp.transport import Transport

PEER = Path(__file__).parent / "peers" / "stdio.py"
US = ClientInfo(name="openfang", version="1")


class Ear:
    """A peer that answers by a table, and keeps what it was told."""

    def __init__(self, **answers: Mapping[str, Any]) -> None:
        self.table = {name.replace("_", "/"): answer for name, answer in answers.items()}
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self.lines: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.hold: anyio.Event | None = None
        self.given_up = anyio.Event()
        self._news = anyio.Event()

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            if self.hold is not None:
                self.told("asked", params)
                await self.hold.wait()
            if method == "bug":
                raise ZeroDivisionError
            if method not in self.table:
                raise RpcError(METHOD_NOT_FOUND, f"{method} is not offered")
            return self.table[method]
        except anyio.get_cancelled_exc_class():
            self.given_up.set()
            raise
        finally:
            self.at_once -= 1

    async def answers(self, questions: Sequence[Question]) -> Mapping[str, Mapping[str, Any]]:
        return {one.key: await self.asked(one.method, one.params) for one in questions}

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        self.notes.append((method, params))
        self._news.set()
        self._news = anyio.Event()

    def complained(self, line: str) -> None:
        self.lines.append(line)

    async def hears(self, method: str, times: int = 1) -> None:
        with anyio.fail_after(20):
            while sum(note == method for note, _ in self.notes) < times:
                await self._news.wait()


def launch(*arguments: str) -> Launch:
    return Launch(
        argv=(sys.executable, "-I", "-S", str(PEER), *arguments),
        cwd=Path("/"),
        environment={"PATH": "/usr/bin:/bin"},
    )


async def greet(transport: Transport, ear: Ear, known: Era | None = None) -> Connection:
    with anyio.fail_after(30):
        return await open_connection(
            transport, ear, client=US, capabilities={"roots": {}}, known=known
        )


@asynccontextmanager
async def connected(*arguments: str, ear: Ear | None = None) -> AsyncGenerator[Connection]:
    """Hold a connection to a peer over stdio."""
    peer = ear or Ear()
    async with open_stdio(launch(*arguments), peer, complained=peer.complained) as transport:
        yield await greet(transport, peer)
