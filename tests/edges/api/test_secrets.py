"""Secrets over HTTP: names go out, values only come in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C18.3", "C12.1")

PEER = Path(__file__).parents[2] / "sources/mcp/peers/echo.py"
SECRETS = "/api/secrets"
VALUE = "not-to-be-seen-4711"
CONFIG = (
    '[[mcp_servers]]\nname = "needy"\nenv = { TOKEN = "${NEEDY_TOKEN}" }\n'
    f'[mcp_servers.transport]\ntype = "stdio"\ncommand = "{sys.executable}"\n'
    f"args = {json.dumps([str(PEER), 'show=TOKEN'])}\n"
)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", config=CONFIG) as running:
        yield running


async def put(node: Live, name: str, value: Any = VALUE) -> Reply:
    return await node.ask("PUT", f"{SECRETS}/{name}", json={"value": value})


async def reached(node: Live) -> bool:
    servers = node.app.parts.servers
    assert servers
    with anyio.fail_after(30):
        return await servers.reached("needy")


async def test_a_server_comes_back_when_what_it_waits_for_is_stored(node: Live) -> None:
    assert not await reached(node)
    wanted = {"name": "NEEDY_TOKEN", "in_environment": False, "servers": ["needy"]}
    listed = (await node.get(SECRETS)).json
    assert listed == {"secrets": [{**wanted, "stored": False}], "total": 1}
    assert (await put(node, "NEEDY_TOKEN")).json == {**wanted, "stored": True}
    assert await reached(node)
    answer = await node.call("mcp:needy:echo")
    assert answer.json["content"][0]["text"].startswith("[redacted:")
    assert (await node.ask("DELETE", f"{SECRETS}/NEEDY_TOKEN")).told == (409, "conflict")
    gone = await node.ask("DELETE", f"{SECRETS}/NEEDY_TOKEN?force=true")
    assert gone.json == {**wanted, "stored": False}
    assert not await reached(node)
    assert (await node.ask("DELETE", f"{SECRETS}/NEEDY_TOKEN")).told == (404, "not_found")


async def test_no_answer_and_no_record_has_the_value(node: Live) -> None:
    said = (await put(node, "NEEDY_TOKEN")).body + (await node.get(SECRETS)).body
    said += (await node.get("/api/audit")).body + (await node.get("/api/config")).body
    said += (await node.get("/api/mcp/servers/needy")).body
    assert VALUE.encode() not in said


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("1ST", VALUE, "secret_name"),
        ("..%2Fmaster.key", VALUE, "secret_name"),
        ("oauth:far", VALUE, "secret_name"),
        ("A" * 129, VALUE, "secret_name"),
        ("NUL", "a\0b", "secret_value"),
        ("EMPTY", "", "body"),
        ("NUMBER", 1, "body"),
        ("LONG", "x" * 40_000, "body"),
    ],
)
async def test_what_cannot_be_a_secret_is_refused(
    node: Live, name: str, value: Any, rule: str
) -> None:
    assert (await put(node, name, value)).told == (422, rule)
    assert [one["name"] for one in (await node.get(SECRETS)).json["secrets"]] == ["NEEDY_TOKEN"]


async def test_what_the_node_keeps_for_itself_is_neither_shown_nor_removed(node: Live) -> None:
    store = node.app.parts.secrets
    await anyio.to_thread.run_sync(store.set, "oauth:far", VALUE)
    assert [one["name"] for one in (await node.get(SECRETS)).json["secrets"]] == ["NEEDY_TOKEN"]
    assert (await node.ask("DELETE", f"{SECRETS}/oauth:far")).status == 404
    assert await anyio.to_thread.run_sync(store.get, "oauth:far") == VALUE
