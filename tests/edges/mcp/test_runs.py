"""All calls of a session are one run: who goes round in circles is told, then stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C10.1", "C10.4", "C4.6")

GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "circling", "version": "1"},
}
NOTHING_THERE = {"name": "file_read", "arguments": {"path": "nothing.txt"}}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home") as running:
        yield running


async def ask(node: Live, method: str, params: Any, headers: dict[str, str] | None = None) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await node.post("/mcp", body, headers=headers)


async def test_identical_calls_in_a_session_are_a_loop(node: Live) -> None:
    reply = await ask(node, "initialize", GREETING)
    session = {"Mcp-Session-Id": reply.headers["Mcp-Session-Id"]}
    results = [
        (await ask(node, "tools/call", NOTHING_THERE, session)).json["result"] for _ in range(4)
    ]
    assert all(result["isError"] for result in results)
    texts = [" ".join(part["text"] for part in result["content"]) for result in results]
    assert "was not called again" not in texts[0]
    assert "was not called again" in texts[-1]


async def test_single_posts_are_never_a_loop(node: Live) -> None:
    texts = [
        str((await ask(node, "tools/call", NOTHING_THERE)).json["result"]["content"])
        for _ in range(6)
    ]
    assert not any("was not called again" in text for text in texts)
