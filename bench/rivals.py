"""Other gateways from the registry, each in an environment of its own, before the same upstream."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.daemon import Target
from bench.wire import TEXT, Served, until_listening

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_ROOT = Path(__file__).parent.parent
_PEERS = Path(sys.prefix) / "peers"
_UPSTREAM = (sys.executable, str(_ROOT / "bench" / "mcp_stdio.py"))
_FASTMCP = """
import sys
from fastmcp.server import create_proxy
server = create_proxy({"mcpServers": {"echo": {"command": sys.argv[2], "args": [sys.argv[3]]}}})
server.run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR"
)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _proxy(port: int, folder: Path) -> list[str]:
    del folder
    program = str(_PEERS / "mcp-proxy" / "bin" / "mcp-proxy")
    return [program, "--port", str(port), "--log-level", "ERROR", "--", *_UPSTREAM]


def _fastmcp(port: int, folder: Path) -> list[str]:
    script = folder / "fastmcp_proxy.py"
    script.write_text(_FASTMCP)
    return [str(_PEERS / "fastmcp" / "bin" / "python"), str(script), str(port), *_UPSTREAM]


def _hangar(port: int, folder: Path) -> list[str]:
    config = folder / "hangar.yaml"
    upstream = ", ".join(_UPSTREAM)
    config.write_text(f"mcp_servers:\n  echo:\n    mode: subprocess\n    command: [{upstream}]\n")
    program = str(_PEERS / "mcp-hangar" / "bin" / "mcp-hangar")
    options = ["--config", str(config), "--http", "--port", str(port), "--log-level", "ERROR"]
    return [program, "serve", *options]


_COMMANDS: dict[str, Callable[[int, Path], list[str]]] = {
    "mcp-proxy": _proxy,
    "FastMCP's proxy": _fastmcp,
    "mcp-hangar": _hangar,
}
NAMES = tuple(_COMMANDS)


@contextmanager
def running(name: str, folder: Path) -> Generator[Served]:
    """One of them, ready for calls."""
    port = free_port()
    environ = {
        **os.environ,
        "HOME": str(folder),
        "MCP_RATE_LIMIT_RPS": "100000",
        "MCP_RATE_LIMIT_BURST": "100000",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }
    command = _COMMANDS[name](port, folder)
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    ) as process:
        try:
            until_listening(port)
            yield _served(name, Target(process.pid, port))
        finally:
            process.kill()


def _served(name: str, target: Target) -> Served:
    if name != "mcp-hangar":
        return Served(target=target, arguments=TEXT)
    # Its usual mode: one tool through which all others are called.
    calls = [{"mcp_server": "echo", "tool": "get_echo", "arguments": TEXT}]
    return Served(target=target, tool="hangar_call", arguments={"calls": calls})
