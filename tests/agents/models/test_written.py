"""Calls that a model wrote as text: understood where they are meant, and left alone elsewhere."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.models.minds import settings, thinker, thinking
from tests.agents.models.scripted import Says, scripted
from tests.agents.models.test_steps import ask, ended

from openfang.agents.models.wishes import Heard, read
from openfang.agents.models.written import Holding, calls_in
from openfang.core.agents import Words

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.5")

OFFERED = frozenset({"file_read", "system_time"})
ARGUMENTS = {"path": "a.txt"}
CALL = json.dumps({"name": "file_read", "arguments": ARGUMENTS})
LLAMA = json.dumps({"name": "file_read", "parameters": ARGUMENTS})
OPENAI = json.dumps({"type": "function", "function": {"name": "file_read", "arguments": ARGUMENTS}})
WRITTEN = [
    f"<tool_call>{CALL}</tool_call>",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<tool_call>\n{CALL}",
    f"  <tool_call>{CALL}</tool_call>\n",
    "<tool_call><function=file_read><parameter=path>\na.txt\n</parameter></function></tool_call>",
    '<function=file_read>{"path": "a.txt"}</function>',
    "<function=file_read>\n<parameter=path>\na.txt\n</parameter>\n</function>",
    f"[TOOL_CALLS][{CALL}]",
    f"[TOOL_CALLS] {CALL}",
    '[TOOL_CALLS]file_read[ARGS]{"path": "a.txt"}',
    '[TOOL_CALLS]file_read[CALL_ID]abc123[ARGS]{"path": "a.txt"}',
    f"<|python_tag|>{LLAMA}",
    f"```json\n{CALL}\n```",
    f"```\n[{CALL}]\n```",
    f"```tool_call\n{CALL}\n```",
    f"```xml\n<tool_call>{CALL}</tool_call>\n```",
    f"\n{CALL}\n",
    LLAMA,
    OPENAI,
    f"[{CALL}]",
]
TEXT = [
    f"For example:\n```json\n{CALL}\n```\nDo you want that?",
    f"```json\n{CALL}\n```\nThat is how it is written.",
    f"Write `<tool_call>{CALL}</tool_call>` to read it.",
    f"```\n<tool_call>{CALL}</tool_call>\n```\nis how.",
    "<tool_call>launch</tool_call>",
    '<tool_call>{"name": "launch_rockets", "arguments": {}}</tool_call>',
    "<function=launch>{}</function>",
    '{"name": "launch_rockets", "arguments": {}}',
    '{"name": "Ann", "age": 7}',
    f'[{CALL}, {{"name": "launch"}}]',
    f"```python\n{CALL}\n```",
    "[TOOL_CALLS] none",
    "<|python_tag|>print(1)",
    "file_read is a tool.",
    "",
    "{",
    "[[[",
    "`" * 7,
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_call_is_understood_however_it_is_written(text: str) -> None:
    words, (heard,) = calls_in(text, OFFERED)
    assert (heard.tool, read(heard.arguments)) == ("file_read", ARGUMENTS)
    assert not words.strip()


@pytest.mark.parametrize("text", TEXT)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert calls_in(text, OFFERED) == (text, [])


def test_words_around_a_tag_stay_and_several_calls_are_several() -> None:
    text = f"I look.\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>\nWait."
    words, heard = calls_in(text, OFFERED)
    assert (words, len(heard)) == ("I look.\n\n\nWait.", 2)
    _, llama = calls_in(f"<|python_tag|>{LLAMA}; {LLAMA}", OFFERED)
    two = "[TOOL_CALLS]file_read[ARGS]{}[TOOL_CALLS]system_time[ARGS]{}"
    _, mistral = calls_in(two, OFFERED)
    assert (len(llama), [one.tool for one in mistral]) == (2, ["file_read", "system_time"])


def test_a_call_that_is_no_json_is_told_of_if_it_is_plain_whose() -> None:
    inner = '{"name": "file_read", "arguments": {"path": }}'
    _, heard = calls_in(f"<tool_call>{inner}</tool_call>", OFFERED)
    assert heard == [Heard(tool="file_read", arguments=inner)]
    assert read(inner) is None


_PIECES = st.lists(
    st.sampled_from([*WRITTEN, *TEXT, "\n", " ", "words", "```", "<", "<tool", "[", "{", '"'])
    | st.text(max_size=12),
    max_size=8,
).map("".join)


def _held(text: str, cuts: list[int]) -> tuple[str, str]:
    holding = Holding()
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    said = "".join(map(holding.feed, pieces))
    return said, holding.rest()


@given(_PIECES, st.lists(st.integers(0, 300), max_size=20))
def test_nothing_is_lost_or_turned_round_however_it_is_cut(text: str, cuts: list[int]) -> None:
    said, held = _held(text, cuts)
    assert said + held == text


@given(_PIECES, st.lists(st.integers(0, 300), max_size=20))
def test_what_was_said_before_held_no_call(text: str, cuts: list[int]) -> None:
    said, held = _held(text, cuts)
    words, heard = calls_in(held, OFFERED)
    assert (said + words, heard) == calls_in(text, OFFERED)


@given(st.text() | _PIECES)
def test_anything_is_parted_without_an_error_and_only_what_was_offered_is_called(text: str) -> None:
    words, heard = calls_in(text, OFFERED)
    assert {one.tool for one in heard} <= OFFERED
    assert len(words) <= len(text)
    assert calls_in(text, ()) == (text, [])


@given(st.text(alphabet="abc .,\n", min_size=1))
def test_plain_words_pass_at_once(text: str) -> None:
    holding = Holding()
    passed = [holding.feed(one) for one in text]
    assert "".join(passed).strip() == text.strip()


@given(st.recursive(st.none() | st.text(), st.lists) | st.text())
def test_arguments_are_an_object_or_nothing(value: Any) -> None:
    found = read(value)
    assert found is None or isinstance(found, dict)


def test_what_is_very_deep_or_long_is_text() -> None:
    deep = "[" * 100_000
    assert calls_in(deep, OFFERED) == (deep, [])
    long = "<tool_call>" + "x" * 300_000
    holding = Holding()
    assert "".join(holding.feed(long[n : n + 1000]) for n in range(0, len(long), 1000)) == long


@pytest.mark.parametrize(
    "text", [f"Let me see.\n<tool_call>{CALL}</tool_call>", f"```json\n{CALL}\n```"]
)
async def test_a_written_call_is_made_and_its_words_are_not_shown(
    tmp_path: Path, text: str
) -> None:
    thinker(tmp_path)
    heard: list[Any] = []
    with scripted(Says(list(text)), Says("No such file.")) as server:
        async with thinking(tmp_path, settings(server.openai)) as (app, _):
            result = await ask(app, heard=heard)
            events = await app.events()

    assert ended(result) == ("answered", "No such file.")
    words = "".join(one.text for one in heard if isinstance(one, Words))
    assert "file_read" not in words
    called = [one.context.get("tool") for one in events if one.event_type.endswith("_start")]
    assert "builtin:file_read" in called
    assert server.asked[1].messages[-1]["role"] == "tool"
