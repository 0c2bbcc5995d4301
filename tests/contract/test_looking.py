"""Searches, images and places, from outside: over HTTP and MCP, with keys that may and may not."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from tests.contract.house import House, house, traced
from tests.sources.engines import KEY, NAMES, PAGES, Engines, searched

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.requirement("C6.2")
SECRET = "AKIA" + "IOSFODNN7" + "EXAMPLE"
PLACE = '[tools.location]\nlatitude = 52.52\nlongitude = 13.405\ncity = "Berlin"\n'
AGENT = """
async def run(message, context):
    return (await context.call("image_analyze", {"path": message, "prompt": "What is it?"})).text
"""
MANIFEST = """
name = "painter"
module = "python:agent.py"
[capabilities]
tools = ["image_analyze"]
[policy]
project = "default"
"""
FILES = {"agents/painter/agent.toml": MANIFEST, "agents/painter/agent.py": AGENT}


def search_config(engines: Engines, name: str) -> str:
    return (
        f'[tools.web_search]\nprovider = "{name}"\nbase_url = "{engines.at(name)}"\n'
        'api_key = "${SEARCHING}"\nallow_private = true\n'
    )


@pytest.fixture(scope="module")
def engines() -> Generator[Engines]:
    with searched() as found:
        yield found


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Generator[House]:
    """A node with an engine, whose key is among its secrets, and a place."""
    folder = tmp_path_factory.mktemp("looking")
    with house(folder, search_config(engines, "tavily"), PLACE, files=FILES) as running:
        assert running.ask("PUT", "/api/secrets/SEARCHING", {"value": KEY}).status in {200, 201}
        yield running


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """A node where none of it is configured."""
    with house(tmp_path_factory.mktemp("bare")) as running:
        yield running


def drawn() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (31, 17)).save(file, "PNG")
    return file.getvalue()


def test_a_search_reaches_the_engine_with_the_stored_key(looking: House, engines: Engines) -> None:
    found = looking.call("web_search", {"query": "figs", "max_results": 2}).json
    assert [one["url"] for one in found["structured"]["results"]] == [one[1] for one in PAGES[:2]]
    assert found["labels"] == ["external_network"]
    seen = engines.seen[-1]
    assert (seen.query, seen.headers["authorization"]) == ("figs", f"Bearer {KEY}")
    over_mcp = looking.use("web_search", {"query": "dates"})["result"]
    assert f"5. {PAGES[4][0]}" in over_mcp["content"][0]["text"]
    assert engines.seen[-1].query == "dates"
    assert KEY not in looking.daemon.home.log.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_engine_is_the_one_that_is_configured(
    looking: House, engines: Engines, name: str
) -> None:
    before = looking.configuration
    looking.configure(before.replace('"tavily"', f'"{name}"').replace("/tavily", f"/{name}"))
    try:
        found = looking.call("web_search", {"query": f"figs by {name}"}).json
    finally:
        looking.configure(before)
    assert found["structured"]["provider"] == name
    assert engines.seen[-1].path.startswith(f"/{name}/")


@pytest.mark.requirement("C9.3", "C9.2")
def test_a_secret_never_leaves_in_a_question_and_a_found_page_makes_the_next_one_ask(
    looking: House, engines: Engines
) -> None:
    asked = len(engines.seen)
    refused = looking.call("web_search", {"query": f"who owns {SECRET}"})
    assert (refused.status, refused.rule) == (403, "secret_leaves")
    assert len(engines.seen) == asked
    run = traced(901)
    assert looking.call("web_search", {"query": "one"}, headers=run).status == 200
    second = looking.call("web_search", {"query": "two"}, headers=run)
    assert (second.status, second.rule) == (202, "untrusted_effect")


def test_an_image_of_ones_own_workspace_is_looked_at_and_no_other(looking: House) -> None:
    painter = looking.guest("painter", tools=["image_analyze"])
    folder = looking.daemon.home.path / "workspaces" / "key-painter"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "a.png").write_bytes(drawn())
    (folder / "text.png").write_text("no image")
    (folder / "link.png").symlink_to(looking.daemon.home.path / "key")
    told = painter.call("image_analyze", {"path": "a.png", "prompt": "What is it?"}).json
    assert told["structured"]["width"] == 31
    assert "No model with vision is at hand" in told["content"][0]["text"]
    assert told["labels"] == ["local_file"]
    over_mcp = painter.use("image_analyze", {"path": "a.png"})["result"]
    assert over_mcp["content"][0]["text"].startswith("PNG, 31 x 17 pixels")
    for path in ("text.png", "link.png", "../../config.toml", "none.png"):
        refused = painter.call("image_analyze", {"path": path}).json
        assert refused["outcome"] == "error", path


@pytest.mark.needs("bwrap")
def test_an_agent_looks_at_an_image_of_its_own_workspace(looking: House) -> None:
    folder = looking.daemon.home.path / "workspaces" / "agent-painter"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "a.png").write_bytes(drawn())
    asked = {"message": "a.png", "session": "pictures"}
    answer = looking.ask("POST", "/api/agents/painter/message", asked).json
    assert answer["response"].startswith("PNG, 31 x 17 pixels")


def test_the_place_of_the_configuration_is_told(looking: House) -> None:
    told = looking.call("location_get").json
    assert told["structured"] == {"latitude": 52.52, "longitude": 13.405, "city": "Berlin"}
    assert told["labels"] == ["private"]


def test_what_is_not_configured_asks_nobody_and_names_the_keys(bare: House) -> None:
    for tool, arguments, key in (
        ("web_search", {"query": "figs"}, "[tools.web_search]"),
        ("location_get", {}, "[tools.location]"),
    ):
        told = bare.call(tool, arguments).json
        assert told["outcome"] == "error"
        assert key in told["content"][0]["text"]
        over_mcp = bare.use(tool, arguments)["result"]
        assert over_mcp["isError"]
