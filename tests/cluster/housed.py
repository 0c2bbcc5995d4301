"""Three nodes in the place of one: what is written for one daemon is run against all of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.balancer import balancing
from tests.faults.daemon import Home, serving
from tests.peers.a2a.house import House, key
from tests.postgres import fresh

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from tests.faults.daemon import Daemon

NODES = os.environ.get("TEST_NODES", "")
"""How many nodes there are in the place of one, if that is wanted."""
ENGINE = os.environ.get("TEST_ENGINE", "auto")
SECONDS = 60
_SHARED = ("master.key", "key", "agents", "config.toml")


@dataclass(frozen=True, slots=True)
class SharedHome(Home):
    """The home of one of them; what it keeps lies in the database of all."""

    database: str = ""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        marks = count(1)
        numbered = re.sub(r"\?", lambda _: f"${next(marks)}", sql)
        return asyncio.run(_rows(self.database, numbered, parameters))


async def _rows(url: str, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    connection: Any = await import_module("asyncpg").connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql, *parameters)]
    finally:
        await connection.close()


@dataclass(frozen=True, slots=True)
class Houses(House):
    """Some nodes behind a balancer, whichever of them answers."""

    nodes: tuple[House, ...] = ()

    def begun(self, name: str) -> None:
        self._seen(f"seen begun {name}")

    def stopped(self, name: str) -> None:
        self._seen(f"seen stopped {name}")

    def _seen(self, question: str) -> None:
        """Ask the agent of one node after the other: nobody knows which of them it is."""
        last = time.monotonic() + SECONDS
        while not any(node.tell(question) == "yes" for node in self.nodes):
            assert time.monotonic() < last, question

    def release(self, name: str) -> None:
        for node in self.nodes:
            node.release(name)

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        return tuple(node.daemon for node in self.nodes)

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def complaints(self) -> list[str]:
        return [line for node in self.nodes for line in node.complaints()]


@pytest.fixture(scope="session")
def nodes_server(request: pytest.FixtureRequest) -> str:
    """The database server of several nodes, if there are to be several."""
    return request.getfixturevalue("postgres_server") if NODES else ""


@contextmanager
def startable(home: Home, server: str) -> Generator[Callable[[], House]]:
    """Give what serves a home, as often as it is called: by one node, or by several on a server."""
    with ExitStack() as held:
        if server:
            yield held.enter_context(_several(home, server, held))
        else:
            yield lambda: House(held.enter_context(serving(home)), "")


@contextmanager
def _several(home: Home, server: str, held: ExitStack) -> Generator[Callable[[], Houses]]:
    """Serve by nodes that have a copy of the home each; where they are reached stays the same."""
    with fresh(server) as url, balancing([]) as balancer:
        moved = home.run("storage", "migrate", "--to", url)
        assert moved.returncode == 0, moved.stderr
        (home.path / "openfang.db").unlink()
        names = "abcdefgh"[: int(NODES)]
        homes = [_copied(home, name, url, balancer.address) for name in names]
        host, _, port = balancer.address.removeprefix("http://").partition(":")

        def start() -> Houses:
            daemons = [held.enter_context(serving(one)) for one in homes]
            balancer.nodes[:] = ["http://{}:{}".format(*one.address) for one in daemons]
            front = replace(daemons[0], address=(host, int(port)))
            return Houses(front, "", tuple(House(daemon, "") for daemon in daemons))

        yield start


@contextmanager
def housed(home: Home, server: str) -> Generator[House]:
    """Serve such a home, and have a second caller."""
    with startable(home, server) as start:
        made = start()
        yield replace(made, other=key(made.daemon, tools=["agent:*"]))


def _copied(home: Home, name: str, url: str, public: str) -> SharedHome:
    folder = home.path.parent / f"{home.path.name}-{name}" / "home"
    folder.mkdir(mode=0o700, parents=True)
    for shared in _SHARED:
        _copy(home.path / shared, folder / shared)
    config = (folder / "config.toml").read_text()
    head = f"public_url = {json.dumps(public)}\n"
    tail = f"\n[storage]\nurl = {json.dumps(url)}\n[cluster]\nnode = {json.dumps(name)}\n"
    (folder / "config.toml").write_text(f"{head}{config}{tail}engine = {json.dumps(ENGINE)}\n")
    return SharedHome(folder, url)


def _copy(source: Path, to: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, to)
    else:
        shutil.copy2(source, to)
