"""What lies in a home is its owner's alone, whatever the mask that the node was started with."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C18.3")

PEER = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "echo.py"
SERVER = f"""
[[mcp_servers]]
name = "files"
transport = {{ type = "stdio", command = "{sys.executable}", args = ["{PEER}"] }}
"""


@pytest.fixture
def _no_mask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(home: Path) -> list[str]:
    """What others could open: the home, through which all ways lead, and each file by itself."""
    # The test wrote the configuration; what a child makes in its own home is its own.
    ours = (one for one in home.rglob("*") if one.is_file() and "servers" not in one.parts)
    paths = [home, *(one for one in ours if one.name != "config.toml")]
    assert len(paths) > 10
    modes = {str(one.relative_to(home)): stat.S_IMODE(one.lstat().st_mode) for one in paths}
    return [f"{mode:o} {name}" for name, mode in modes.items() if mode & 0o077]


@pytest.mark.usefixtures("_no_mask")
async def test_nothing_in_a_home_is_open_to_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with live(home, config=SERVER) as node:
        with anyio.fail_after(30):
            while not (await node.get("/api/mcp/servers")).json["connected"]:
                await node.post("/api/mcp/servers/refresh")
        await node.ask("PUT", "/api/secrets/token", json={"value": "a-token-of-ours"})
        written = await node.call("file_write", {"path": "a/b", "content": "mine"})
        assert written.json["outcome"] == "ok"
        added = {"name": "more", "transport": {"type": "stdio", "command": "no-such"}}
        assert (await node.post("/api/mcp/servers", added)).status == 201
        assert await to_thread.run_sync(open_to_others, home) == []
