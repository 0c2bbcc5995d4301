"""`GET /api/mcp/servers` against the documents of the seeds, key by key."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C4.8", "C14.1")

TESTS = Path(__file__).parents[2]
PEER = TESTS / "sources/mcp/peers/echo.py"
DOCUMENTS = ("000-16-document.json", "001-08-document.json", "002-16-document.json")
TOKEN = "GITHUB_PERSONAL_ACCESS_TOKEN"
ARGS = [str(PEER), "tools=create_issue,search_repos"]
CONFIG = f"""\
[[mcp_servers]]
name = "github"
timeout_secs = 30
env = ["{TOKEN}"]

[mcp_servers.transport]
type = "stdio"
command = "{sys.executable}"
args = {json.dumps(ARGS)}
"""
# What the seeds leave to the server that they show: where it lies, and what it says of its tools.
ITS_OWN = {"command", "args", "description", "tools_count"}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncGenerator[Live]:
    async with live(tmp_path / "home", config=CONFIG) as running:
        await running.ask("PUT", f"/api/secrets/{TOKEN}", json={"value": "not-to-be-seen"})
        servers = running.app.parts.servers
        assert servers
        with anyio.fail_after(30):
            assert await servers.reached("github")
        yield running


def seed(name: str) -> Any:
    text = (TESTS / "data/seeds" / name).read_text()
    return json.loads(text.replace("[...]", '["..."]'))


def differences(theirs: Any, ours: Any, place: str = "") -> list[str]:
    """Where our document is not theirs; what we have beside it is no difference."""
    if type(theirs) is not type(ours):
        return [f"{place} is {type(ours).__name__}"]
    match theirs:
        case dict():
            table = cast("dict[str, Any]", theirs)
            missing = [f"{place}/{key} is missing" for key in table if key not in ours]
            found = [key for key in table if key in ours and key not in ITS_OWN]
            return missing + [
                one for key in found for one in differences(table[key], ours[key], f"{place}/{key}")
            ]
        case list():
            pairs = zip(cast("list[Any]", theirs), ours, strict=False)
            return [one for pair in pairs for one in differences(*pair, f"{place}[]")]
        case _:
            return [] if theirs == ours else [f"{place} is {ours!r}"]


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_each_key_of_the_seeds_is_there_with_its_type_and_value(
    node: Live, name: str
) -> None:
    theirs, ours = seed(name), (await node.get("/api/mcp/servers")).json
    assert differences(theirs, ours) == []
    assert set(ours) == set(theirs)
    (configured,), (connected,) = ours["configured"], ours["connected"]
    assert configured["transport"] == {"type": "stdio", "command": sys.executable, "args": ARGS}
    assert set(connected) == set(theirs["connected"][0])
    assert connected["tools_count"] == len(connected["tools"]) == 2
    for tool in connected["tools"]:
        assert set(tool) == {"name", "description"}
        assert tool["description"].startswith("[MCP:github] ")


def test_a_difference_would_be_seen() -> None:
    theirs = seed(DOCUMENTS[0])
    assert differences(theirs, theirs) == []
    less = {**theirs, "connected": [{**theirs["connected"][0], "connected": 1, "name": "x"}]}
    del less["configured"][0]["env"]
    assert sorted(differences(seed(DOCUMENTS[0]), less)) == [
        "/configured[]/env is missing",
        "/connected[]/connected is int",
        "/connected[]/name is 'x'",
    ]


async def test_health_is_one_word_each_and_a_refresh_is_a_count(node: Live) -> None:
    assert (await node.get("/api/mcp/health")).json == {"github": "healthy"}
    assert (await node.post("/api/mcp/servers/refresh")).json == {"refreshed": 1, "failed": []}


async def test_tools_of_servers_are_filtered_by_source_risk_and_tag(node: Live) -> None:
    async def found(query: str) -> list[str]:
        listed = (await node.get(f"/api/tools?{query}")).json["tools"]
        return [tool["name"] for tool in listed]

    both = ["mcp_github_create_issue", "mcp_github_search_repos"]
    assert await found("source=mcp") == both
    by_risk = {risk: await found(f"source=mcp&risk={risk}") for risk in ("LOW", "MEDIUM", "HIGH")}
    assert sorted(name for names in by_risk.values() for name in names) == both
    tool = (await node.get("/api/tools/mcp:github:create_issue")).json
    assert "mcp_github_create_issue" in by_risk[tool["risk"]]
    for tag in tool["side_effects"]:
        assert "mcp_github_create_issue" in await found(f"source=mcp&tag={tag}")
    assert await found("source=builtin&tag=fs.write") == ["file_write"]
