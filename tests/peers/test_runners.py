"""Servers that a package runner fetches and starts: `npx` and `uvx`, cold, warm and slow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.peers.conftest import running, until
from tests.peers.registries import Registry, registry
from tests.peers.servers import Server, runners

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.requirement("C16.2", "C3.2"), pytest.mark.needs("bwrap")]
ROOT = Path(__file__).parents[2]
ECHO_MATH = ROOT / "docs/examples/servers/echo-math/index.js"
ECHO = ROOT / "tests/sources/mcp/peers/echo.py"
OPEN = {"trust": "high", "risk": "LOW", "sandbox": "required", "allow_private": True}


@pytest.fixture
def shop() -> Iterator[Registry]:
    with registry() as found:
        yield found


@pytest.fixture
def programs(tmp_path: Path) -> str:
    return runners(tmp_path / "prefix")


async def test_npx_fetches_a_server_and_starts_it_again_without_a_network(
    tmp_path: Path, shop: Registry, programs: str
) -> None:
    script = b"#!/usr/bin/env node\n" + await anyio.Path(ECHO_MATH).read_bytes()
    shop.publish_npm("echo-math", "1.0.0", {"index.js": script}, "index.js")
    npm = {"npm_config_registry": shop.address, "npm_config_prefer_offline": "true"}
    keys = {**OPEN, "env": npm}
    entry = Server(name="echo", command="npx", args=("-y", "echo-math@1.0.0"), keys=keys)
    async with running(tmp_path / "node", entry, path=programs) as node:
        assert (await node.call("echo:echo", text="cold")).text == "cold"
        assert "/echo-math/-/echo-math-1.0.0.tgz" in shop.asked
        shop.pages.clear()
        await node.restarted("echo")
        assert (await node.call("echo:echo", text="warm")).text == "warm"
        cache = node.app.parts.home.path / "servers" / "echo" / "home" / ".npm" / "_npx"
        assert await to_thread.run_sync(lambda: list(cache.iterdir()))


async def test_uvx_fetches_a_server_and_starts_it_again_without_a_network(
    tmp_path: Path, shop: Registry, programs: str
) -> None:
    source = await anyio.Path(ECHO).read_bytes()
    shop.publish_wheel("echo_words", "1.0.0", source)
    keys = {
        **OPEN,
        "env": {"UV_DEFAULT_INDEX": f"{shop.address}/simple", "UV_PYTHON_DOWNLOADS": "never"},
    }
    entry = Server(name="echo", command="uvx", args=("echo_words@1.0.0", "tools=echo"), keys=keys)
    async with running(tmp_path / "node", entry, path=programs) as node:
        assert (await node.call("echo:echo", text="cold")).text == "cold"
        assert "/files/echo_words-1.0.0-py3-none-any.whl" in shop.asked
        shop.pages.clear()
        await node.restarted("echo")
        assert (await node.call("echo:echo", text="warm")).text == "warm"


async def test_a_start_that_takes_long_is_no_failure(tmp_path: Path, programs: str) -> None:
    """It waits for a word of ours, as others wait for what they download."""
    folder = tmp_path / "shared"
    folder.mkdir()
    os.mkfifo(folder / "word")
    slow = Server(
        name="slow",
        command="sh",
        args=("-c", 'read -r word < "$0/word"; exec python3 "$1"', str(folder), str(ECHO)),
        keys={"trust": "high", "risk": "LOW"},
    )
    quick = Server(name="quick", command="python3", args=(str(ECHO),), keys=slow.keys)
    async with running(tmp_path / "node", slow, quick, path=programs, settled=False) as node:
        writing = await to_thread.run_sync(os.open, folder / "word", os.O_WRONLY)
        await until(lambda: node.source("quick").connected)
        assert (await node.call("quick:echo", text="ready")).text == "ready"
        assert not node.source("slow").connected
        assert (node.source("slow").health.error, node.source("slow").health.failures) == ("", 0)
        os.write(writing, b"go\n")
        os.close(writing)
        await until(lambda: node.source("slow").connected)
        assert (await node.call("slow:echo", text="at last")).text == "at last"
