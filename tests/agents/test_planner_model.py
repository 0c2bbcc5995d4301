"""The planner as a model, and the assistant that thinks with it: what a person is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.agents.test_node import node, say

from openfang.agents.planner.model import PlannerModel
from openfang.app.agents.starters import write_starters
from openfang.core.agents import Message, Prompt, Speaker, Spent, Wanted, Words
from openfang.core.ids import Kind
from openfang.core.tools import Tool

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.5")

_READ = Tool(
    id="builtin:file_read",
    kind=Kind.BUILTIN,
    source="builtin",
    name="file_read",
    wire_name="file_read",
    description="Read a file.",
    input_schema={"type": "object", "properties": {"path": {}}, "required": ["path"]},
    tags=frozenset({"fs.read"}),
)


async def _told(request: str, *results: str) -> str:
    said = [Message(speaker=Speaker.USER, text=request)]
    said += [Message(speaker=Speaker.TOOL, text=text, answers="w") for text in results]
    words: list[str] = []
    async for one in PlannerModel().answer(Prompt(messages=said, tools=[_READ])):
        match one:
            case Words(text):
                words.append(text)
            case Wanted(wish):
                words.append(f"<{wish.tool} {dict(wish.arguments)}>")
            case Spent(usage):
                assert usage.requests == 1
    return "".join(words)


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("thanks", "You are welcome. I am"),
        ("Thank you!", "You are welcome. I am"),
        ("hello there", "Hello. I am"),
        ("good night", "Goodbye. I am"),
        ("see you", "Goodbye. I am"),
        ("ok", "I am the embedded planner: no language model"),
    ],
)
async def test_a_courtesy_is_answered_in_kind(request_: str, answer: str) -> None:
    assert (await _told(request_)).startswith(answer)


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ("read a.txt and b.txt", 'I do not know what to do with "b.txt", so nothing was done.'),
        ("read the file", "The nearest is file_read; it needs: path."),
        ("hi, create a file a.txt", 'I do not know what to do with "create"'),
        ("don't read a.txt", "something not to do"),
        ("I read a.txt every day", "not as a request"),
        ("read " + "a" * 60_000, "too long for a plain request"),
        ("what is the meaning of life?", "Ask for something that one of these does: file_read."),
    ],
)
async def test_it_says_why_nothing_was_done(request_: str, part: str) -> None:
    answer = await _told(request_)

    assert part in answer
    assert len(answer) < 600


async def test_a_result_is_handed_on_and_one_without_a_word_is_told() -> None:
    assert await _told("read a.txt") == "<file_read {'path': 'a.txt'}>"
    assert await _told("read a.txt", "one", "two") == "one\n\ntwo"
    assert await _told("read a.txt", "") == "It was done, and there was nothing in its answer."


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_starters(tmp_path)
    return tmp_path


@pytest.mark.requirement("C6.1")
async def test_the_assistant_remembers_what_it_is_told_however_it_is_asked(home: Path) -> None:
    async with node(home) as (app, _):
        await say(app, "assistant", "remember: my pin is 0042")
        await say(app, "assistant", "My name is Ada, please remember it.")
        await say(app, "assistant", "Remember that the WiFi password is hunter2")

        assert await say(app, "assistant", "What is my PIN?") == "0042"
        assert await say(app, "assistant", "what is the wifi password?") == "hunter2"
        assert "my NAME is VALUE" in await say(app, "assistant", "remember to buy milk")
        assert '"forget"' in await say(app, "assistant", "forget my name")
        assert await say(app, "assistant", "what is my name?") == "Ada"


@pytest.mark.requirement("C6.1")
async def test_the_assistant_says_that_a_folder_is_empty(home: Path) -> None:
    async with node(home) as (app, _):
        assert await say(app, "assistant", "list files") == "The folder is empty."
