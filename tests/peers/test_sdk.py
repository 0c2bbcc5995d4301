"""Servers made with the official SDK, of both of its versions: both eras, every transport."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.peers.conftest import Node, running, until
from tests.peers.servers import HANDSHAKE, MODERN, Server, older_python, toml

from openfang.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

pytestmark = [
    pytest.mark.requirement("C3.1", "C3.3", "C3.4", "C3.5"),
    pytest.mark.needs("bwrap"),
]
SCRIPT = Path(__file__).with_name("sdk_server.py")
NEWER = sys.executable
OLDER = older_python()
OPEN = {"trust": "high", "risk": "LOW", "allow_private": True}
# Name, revision, transport, interpreter and path of each.
PAIRS = (
    ("newer-http", MODERN, "streamable", NEWER, "/mcp"),
    ("newer-sse", HANDSHAKE, "sse", NEWER, "/sse"),
    ("newer-stdio", MODERN, "stdio", NEWER, ""),
    ("older-http", HANDSHAKE, "streamable", OLDER, "/mcp"),
    ("older-sse", HANDSHAKE, "sse", OLDER, "/sse"),
    ("older-stdio", HANDSHAKE, "stdio", OLDER, ""),
)
NAMES = tuple(name for name, *_ in PAIRS)


@contextmanager
def served(*pythons: str) -> Generator[dict[str, str]]:
    """Run one on each interpreter, side by side, and give their addresses."""
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                subprocess.Popen([python, SCRIPT, "http"], stdout=subprocess.PIPE, text=True)
            )
            for python in pythons
        ]
        for child in children:
            stack.callback(child.terminate)
        yield dict(zip(pythons, map(_address, children), strict=True))


def _address(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return f"http://127.0.0.1:{child.stdout.readline().strip()}"


def remote(name: str, url: str) -> str:
    lines = [f"{key} = {toml(value)}" for key, value in OPEN.items()]
    reached = f'transport = {{ type = "http", url = "{url}" }}'
    return "\n".join(["[[mcp_servers]]", f'name = "{name}"', *lines, reached, ""])


@pytest.fixture(scope="module")
def entries() -> Generator[list[str]]:
    with served(NEWER, OLDER) as addresses:
        yield [
            remote(name, addresses[python] + path)
            if path
            else Server(name=name, command=python, args=(str(SCRIPT), "stdio"), keys=OPEN).entry
            for name, _, _, python, path in PAIRS
        ]


@pytest.fixture(scope="module")
async def node(
    entries: list[str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Node]:
    async with running(tmp_path_factory.mktemp("node"), *entries) as opened:
        yield opened


async def test_each_is_found_in_its_era_and_over_its_transport(node: Node) -> None:
    found = {
        name: (node.source(name).version, node.connection(name).transport.kind) for name in NAMES
    }
    assert found == {name: (version, kind) for name, version, kind, *_ in PAIRS}


@pytest.mark.parametrize("name", NAMES)
async def test_structured_results_arrive_whole(node: Node, name: str) -> None:
    found = await node.call(f"{name}:weather", city="Ulm")
    assert found.structured == {"city": "Ulm", "degrees": 21.5}
    tool = node.app.parts.registry.find(f"mcp:{name}:weather")
    assert tool
    assert tool.title == "Weather of a city"
    assert tool.output_schema
    assert tool.output_schema["properties"].keys() == {"city", "degrees"}
    labelled = await node.call(f"{name}:labelled")
    assert (labelled.text, labelled.structured) == ("both", {"n": [1, None]})
    assert labelled.meta["x/y"] == {"z": 1}


@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_that_fails_is_an_answer(node: Node, name: str) -> None:
    failed = await node.call(f"{name}:fail")
    assert (failed.is_error, failed.text) == (True, "out of figs")


@pytest.mark.parametrize("name", NAMES)
async def test_progress_comes_in_order_and_before_the_answer(node: Node, name: str) -> None:
    told = list[Progress]()
    call = node.made(f"{name}:count", {"steps": 3}, progress=told.append)
    with anyio.fail_after(60):
        result = await node.app.invoke(call)
    assert result.text == "counted to 3"
    assert told == [
        Progress(progress=step, total=3, message=f"step {step}") for step in range(1, 4)
    ]


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_that_is_given_up_ends_at_the_server(node: Node, name: str) -> None:
    await node.given_up(f"{name}:hang", {"word": name})
    with anyio.fail_after(60):
        while name not in (await node.call(f"{name}:given_up")).text:  # noqa: ASYNC110 - it only says so when asked
            await anyio.sleep(0.01)


@pytest.mark.requirement("C3.6")
@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_that_is_added_is_there_at_once(node: Node, name: str) -> None:
    word = name.replace("-", "_")
    await node.call(f"{name}:grow", name=word)
    await until(lambda: node.app.parts.registry.find(f"mcp:{name}:{word}"))
    assert (await node.call(f"{name}:{word}")).text == "here I am"


@pytest.mark.parametrize("name", NAMES)
async def test_a_question_that_nobody_can_answer_is_refused_and_harms_nobody(
    node: Node, name: str
) -> None:
    refused = await node.call(f"{name}:ask")
    assert refused.is_error
    assert (await node.call(f"{name}:weather", city="Bonn")).structured["city"] == "Bonn"
