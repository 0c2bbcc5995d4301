"""Nodes in front of one MCP server that has all that a client can meet."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.cluster.house import clustered
from tests.conformance.starting import TOOLSET, fixture
from tests.postgres import fresh

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Cluster, Node

PLACE = f"/mcp/{TOOLSET}"
SERVER = "fixture"
CONFIG = """
[toolsets.{toolset}]
servers = ["fixture"]
prefix = false

[[mcp_servers]]
name = "fixture"
trust = "high"
risk = "LOW"
allow_private = true
roots = true
transport = {{ type = "http", url = "{url}" }}
"""
KEYLESS = "\n[auth]\nrequire_key = false\n"
_SECONDS = 90.0


@contextmanager
def fronts(
    make_home: Callable[[], Cli], server: str, names: str = "abc", more: str = ""
) -> Generator[Cluster]:
    """Run nodes that are connected to one upstream, on a database of their own."""
    with fixture() as upstream, fresh(server) as url:
        config = CONFIG.format(toolset=TOOLSET, url=upstream) + more
        with clustered(make_home, url, names, config) as cluster:
            for node in cluster.nodes:
                connected(node)
            yield cluster


def connected(node: Node) -> None:
    """Wait until a node has its server, and sees as many nodes as there are."""
    until(lambda: _health(node) == {SERVER: "healthy"})


def _health(node: Node) -> Any:
    with node.client as client:
        return client.get("/api/mcp/health").json()


def until(true: Callable[[], object], seconds: float = _SECONDS) -> None:
    """Wait for what nobody tells."""
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last
        time.sleep(0.02)
