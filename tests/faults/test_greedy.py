"""A server that takes all it can get takes its own share; the daemon and the others go on.

What the server does ends by itself: at 200 processes, 256 MB of memory, 64 MB on the disk.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.peers.servers import Server

from openfang.core.errors import CallFailed
from openfang.host.cgroups import hierarchy
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

pytestmark = [pytest.mark.requirement("C16.1", "C16.4"), pytest.mark.needs("bwrap")]
PEER = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "errands.py"
KEYS = {"sandbox": "required", "network": False, "trust": "high", "risk": "LOW"}
FILE_SIZE = 16_000_000


@pytest.fixture(autouse=True)
def outer_limits() -> Generator[None]:
    """Hold them from outside, too: whatever the sandbox does, the machine stays whole.

    The bounds count from what this process already has: one below it would end the process.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    held = int(status.partition("VmData:")[2].split()[0]) << 10
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    bounds = {resource.RLIMIT_DATA: held + (1 << 30), resource.RLIMIT_NOFILE: files + 1024}
    if os.geteuid() == 0:
        bounds[resource.RLIMIT_NPROC] = 400
    before = {kind: resource.getrlimit(kind) for kind in bounds}
    for kind, bound in bounds.items():
        resource.setrlimit(kind, (bound, before[kind][1]))
    yield
    for kind, pair in before.items():
        resource.setrlimit(kind, pair)


@asynccontextmanager
async def node(folder: Path) -> AsyncGenerator[OpenApp]:
    def server(name: str, **keys: object) -> Server:
        words = ("-I", "-S", str(PEER), "get_note")
        return Server(name=name, command=sys.executable, args=words, keys={**KEYS, **keys})

    greedy = server("greedy", max_memory_mb=100, max_processes=40)
    text = "\n".join(one.entry for one in (greedy, server("modest")))
    environ = {"HOME": str(folder)}
    async with open_test_app(folder / "node", config=text, environ=environ) as app:
        assert app.parts.servers
        with anyio.fail_after(60):
            await app.parts.servers.settled()
            yield app


async def ran(app: OpenApp, server: str, errand: str, text: str = "") -> str:
    return (await app.call(f"mcp:{server}:get_note", errand=errand, text=text)).text


async def test_a_fork_bomb_is_held_to_its_number(tmp_path: Path) -> None:
    async with node(tmp_path) as app:
        assert 0 < int(await ran(app, "greedy", "fork")) < 40
        assert await ran(app, "modest", "", "still here") == "still here"


async def test_memory_is_held_to_its_bound(tmp_path: Path) -> None:
    async with node(tmp_path) as app:
        assert 10 < int(await ran(app, "greedy", "hog", "256")) < 100
        assert int(await ran(app, "modest", "hog", "256")) == 256
        assert await ran(app, "greedy", "", "and lives") == "and lives"


@pytest.mark.skipif(hierarchy() is None, reason="there is no cgroup that we may write")
async def test_memory_is_held_for_all_that_a_server_starts_together(tmp_path: Path) -> None:
    async with node(tmp_path) as app:
        try:
            got = int(await ran(app, "greedy", "herd"))
        except CallFailed:
            got = 0  # the kernel chose the server itself
        assert got < 4
        assert await ran(app, "modest", "herd") == "4"


async def test_a_file_grows_no_longer_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openfang.app.confine.FILE_SIZE", FILE_SIZE)
    async with node(tmp_path) as app:
        file = tmp_path / "node" / "servers" / "greedy" / "home" / "big"
        assert int(await ran(app, "greedy", "fill", str(file))) <= FILE_SIZE
        assert await ran(app, "modest", "", "still here") == "still here"


async def test_the_layers_say_what_bounds_it(tmp_path: Path) -> None:
    async with node(tmp_path) as app:
        assert app.parts.servers
        layers = {layer.name: layer for layer in app.parts.servers.layers["greedy"]}
    assert layers["system calls"].present
    assert layers["resources"].present
    assert ("cgroup" in layers["resources"].detail) == (hierarchy() is not None)
    assert layers["own user"].present == (os.geteuid() == 0)
