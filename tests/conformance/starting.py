"""Starts the fixture server, and a gateway in front of it that hides nothing."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.faults.daemon import NO_LIMITS, make_home, serving

from openfang.config.servers import McpServer

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.faults.daemon import Daemon

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = Path(__file__).with_name("fixture.py")
# What it needs to find the modules beside it.
ENVIRONMENT: Final = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
TOOLSET: Final = "conformance"
# Whoever comes is let in: the suite cannot send a key.
_CONFIG: Final = """
[auth]
require_key = false

[toolsets.{toolset}]
servers = ["fixture"]
prefix = false

[[mcp_servers]]
name = "fixture"
trust = "high"
risk = "LOW"
allow_private = true
{roots}
transport = {{ type = "http", url = "{url}" }}
"""


def command(*options: str) -> list[str]:
    """Give the command that starts it: `command("--stdio")`."""
    return [sys.executable, str(PROGRAM), *options]


@contextmanager
def fixture(*options: str) -> Generator[str]:
    """Run it over HTTP, and give its address."""
    with subprocess.Popen(
        command("--http", "0", *options), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout
            yield f"http://127.0.0.1:{int(child.stdout.readline())}/mcp"
        finally:
            child.terminate()


@contextmanager
def gateway(folder: Path, upstream: str) -> Generator[Daemon]:
    """Serve a home whose only MCP server is at this address, and wait until that is connected."""
    roots = "roots = true" if "roots" in McpServer.model_fields else ""
    config = NO_LIMITS + _CONFIG.format(toolset=TOOLSET, url=upstream, roots=roots)
    with serving(make_home(folder / "home", config)) as daemon:
        _wait_for_health(daemon)
        yield daemon


def _wait_for_health(daemon: Daemon) -> None:
    for _ in range(5000):
        if daemon.ask("GET", "/api/mcp/health").json == {"fixture": "healthy"}:
            return
    raise AssertionError(daemon.home.log.read_text())


def address(daemon: Daemon) -> str:
    """Say where the toolset is served that shows the fixture as it is."""
    host, port = daemon.address
    return f"http://{host}:{port}/mcp/{TOOLSET}"
