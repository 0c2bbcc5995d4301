"""Everything federated with a server made with the official SDK: both eras, over stdio and HTTP."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.streams.text import TextReceiveStream
from tests.sources.mcp.federation import Node, Person, node, stdio, web

from openfang.core.news import Listed, Updated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

pytestmark = pytest.mark.requirement("C3.10")
ROOT = Path(__file__).parents[3]
FIXTURE = ["-m", "tests.conformance.fixture"]
WATCHED = "test://watched-resource"
ASKS = "test_input_required_result"


@asynccontextmanager
async def listening(*options: str) -> AsyncGenerator[str]:
    """Start the server on a port of its own, and give its address."""
    command = [sys.executable, *FIXTURE, "--http", "0", *options]
    async with await anyio.open_process(command, cwd=ROOT, stderr=None) as process:
        assert process.stdout
        try:
            with anyio.fail_after(60):
                port = await TextReceiveStream(process.stdout).receive()
            yield f"http://127.0.0.1:{int(port)}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def opened(folder: Path, era: str, way: str) -> AsyncGenerator[Node]:
    options, more = ["--legacy"] if era == "handshake" else [], "roots = true"
    if way == "stdio":
        env = f'env = {{ PYTHONPATH = "{ROOT}" }}'
        args = json.dumps([*FIXTURE, "--stdio", *options])
        async with node(folder, stdio("peer", args, f"{env}\n{more}")) as it:
            yield it
        return
    async with listening(*options) as url, node(folder, web("peer", url, more)) as it:
        yield it


async def filled(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill a form with what each field is called."""
    names = params["requestedSchema"].get("required", ())
    return {"action": "accept", "content": {name: f"my {name}" for name in names}}


def person() -> Person:
    plain = Person(level="info")
    plain.answers = {**plain.answers, "elicitation/create": filled}
    return plain


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_everything_of_a_real_server_is_federated(tmp_path: Path, era: str, way: str) -> None:
    async with opened(tmp_path, era, way) as it:
        source = it.source()
        assert source.version == ("2026-07-28" if era == "modern" else "2025-11-25")
        assert [len(source.resources), len(source.templates), len(source.prompts)] == [3, 1, 5]
        assert source.instructions == "What a conformance suite looks for."
        await offers(it, era)
        await asks(it, person())
        await tells(it)
        await changes(it)


async def offers(it: Node, era: str) -> None:
    read = await it.call("resources/read", uri="test://static-text")
    assert read.content[0]["resource"]["text"] == "This text stays as it is."
    binary = await it.call("resources/read", uri="test://static-binary")
    assert binary.content[0]["resource"]["blob"]
    missing = (await it.call("resources/read", uri="test://nothing")).fault
    assert missing
    assert missing["code"] == (-32602 if era == "modern" else -32002)
    values = {"arg1": "a", "arg2": "b"}
    prompt = await it.call("prompts/get", name="test_prompt_with_arguments", arguments=values)
    assert prompt.content[0]["role"] == "user"
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    argument = {"name": "arg1", "value": "par"}
    completed = await it.call("completion/complete", ref=ref, argument=argument)
    assert completed.structured["values"][:2] == ["par", "paris"]


async def asks(it: Node, client: Person) -> None:
    async def said(tool: str, **arguments: str) -> str:
        return (await it.call(tool, client, **arguments)).text

    assert await said("test_sampling", prompt="?") == "LLM response: Paris"
    assert '"username": "my username"' in await said("test_elicitation", message="?")
    assert '"age": 30' in await said("test_elicitation_sep1034_defaults")
    assert await said(f"{ASKS}_list_roots") == "file:///workspace"
    everything = await said(f"{ASKS}_multiple_inputs")
    assert everything == 'Paris accept {"name": "my name"} file:///workspace'
    assert "my color" in await said(f"{ASKS}_multi_round")
    before = len(client.asked)
    lacking = await it.call("test_missing_capability", Person(capabilities={}))
    assert lacking.is_error
    assert len(client.asked) == before


async def tells(it: Node) -> None:
    loud, quiet = Person(level="debug"), Person(level="error")
    for client in (quiet, loud):
        await it.call("test_logging_tool", client)
    assert [params["level"] for _, params in quiet.told] == ["error"]
    assert [params["level"] for _, params in loud.told] == ["debug", "error"]


async def changes(it: Node) -> None:
    it.heard.clear()
    await it.call("test_trigger_resource_change")
    await it.call("resources/subscribe", uri=WATCHED)
    await it.call("test_trigger_resource_change")
    await it.hears(Updated("peer", WATCHED))
    await it.call("test_trigger_prompt_change")
    await it.hears(Listed.PROMPTS)
    assert len(it.source().prompts) == 6
    assert it.heard.count(Updated("peer", WATCHED)) == 1
    await it.call("resources/unsubscribe", uri=WATCHED)
