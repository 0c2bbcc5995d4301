"""The embedded planner: what it understands, what it leaves alone, and that it never guesses.

The first 92 prompts were written before it, and half of them were held out. Those that came later
are split by the same rule, by their text alone, but were seen in both halves: each half has to
hold for the first ones by themselves as well.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.agents.planner.offer import Offer
from openfang.agents.planner.plan import Abstained, Planned, Planner
from openfang.core.ids import Kind
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.requirement("C6.5")

_DATA = json.loads((Path(__file__).parents[1] / "data/planner/prompts.json").read_text())
_FIRST = 92
_DESTRUCTIVE = {"delete_file", "drop_table", "agent_kill"}
_DESTRUCTIVE_WORDS = [
    *("delete", "remove", "erase", "drop", "destroy", "purge"),
    *("wipe", "unlink", "rm", "trash", "uninstall", "kill", "forget"),
]
_SOME_WORDS = [
    *_DESTRUCTIVE_WORDS,
    *("deleted", "a.txt", "b/c.txt", "'x'", '"a b.txt"', "old_users", "bob", "5", "all", "*.txt"),
    *("the", "file", "table", "agent", "please", "can", "you", "not", "don't", "if", "and", "then"),
    *("read", "list", "write", "I", "it", "?", ",", "tomorrow", "from", "in", "why", "hi", "stop"),
]


def _offer(one: dict[str, Any]) -> Offer:
    changes = one.get("changes", False)
    return Offer(one["name"], one["description"], one["inputSchema"], changes=changes)


@cache
def _planner(among: str) -> Planner:
    tools, builtins = ([_offer(one) for one in _DATA[name]] for name in ("tools", "builtins"))
    offered = {
        "tools": tools,
        "builtins": builtins,
        "assistant": [one for one in builtins if one.name in _DATA["assistant"]],
        "deleting": [
            *(one for one in tools if one.name == "delete_file"),
            *(one for one in builtins if not one.name.startswith("agent_")),
        ],
        "everything": [*tools, *(one for one in builtins if one.name.startswith("agent_"))],
    }
    return Planner(offered[among])


def _held_out(prompt: str) -> bool:
    return sha256(f"openfang-planner-1:{prompt}".encode()).digest()[-1] % 2 == 0


def _planned(prompt: str, among: str = "tools") -> tuple[str | None, dict[str, Any]]:
    match _planner(among).plan(prompt):
        case Planned(offer, arguments):
            return offer.name, dict(arguments)
        case Abstained():
            return None, {}


def _asked(one: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    return _planned(one["prompt"], one.get("among", "tools"))


@pytest.mark.parametrize("prompts", [_DATA["prompts"][:_FIRST], _DATA["prompts"]])
@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
def test_it_finds_the_tool_and_its_arguments(
    held_out: bool,  # noqa: FBT001 - a parameter
    prompts: Sequence[dict[str, Any]],
) -> None:
    half = [one for one in prompts if _held_out(one["prompt"]) is held_out]
    found = [(_asked(one), one) for one in half]

    tools = sum(got[0] == one["tool"] for got, one in found)
    exact = sum(got == (one["tool"], one["arguments"]) for got, one in found)

    assert len(half) >= 30
    assert tools / len(half) >= 0.90
    assert exact / len(half) >= 0.75


def test_small_talk_and_traps_move_nothing() -> None:
    idle = [one for one in _DATA["prompts"] if one["tool"] is None]

    assert [one["prompt"] for one in idle if _asked(one)[0]] == []
    assert len(idle) >= 100


async def test_the_built_ins_of_the_prompts_are_the_real_ones(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        real = [tool for tool in app.parts.catalog.list(app.caller) if tool.kind is Kind.BUILTIN]

    told = {one["name"]: one for one in _DATA["builtins"]}
    shown = {
        tool.wire_name: {
            "name": tool.wire_name,
            "description": tool.description,
            "inputSchema": dict(tool.input_schema),
            "changes": not tool.only_reads,
        }
        for tool in real
    }
    assert told == {name: one for name, one in shown.items() if name in told}
    assert set(_DATA["assistant"]) < set(told)


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_nothing_destructive_is_chosen_without_a_word_for_it(text: str) -> None:
    tool, _ = _planned(text, "everything")

    assert tool not in _DESTRUCTIVE or any(word in text.lower() for word in _DESTRUCTIVE_WORDS)


@given(
    st.lists(st.sampled_from(_SOME_WORDS), max_size=2),
    st.sampled_from(_DESTRUCTIVE_WORDS),
    st.lists(st.sampled_from(_SOME_WORDS), max_size=4),
)
@settings(max_examples=1000, deadline=None)
def test_something_destructive_is_an_order_with_one_object_and_nothing_besides(
    before: list[str], verb: str, after: list[str]
) -> None:
    words = [*before, verb, *after]
    tool, arguments = _planned(" ".join(words), "everything")

    if tool in _DESTRUCTIVE:
        polite = {"the", "file", "table", "agent", "please", "can", "you", "hi", ",", "?"}
        essential = [word for word in words if word not in polite]
        assert len(essential) == 2
        assert essential[0] in _DESTRUCTIVE_WORDS
        assert list(arguments.values()) == [essential[1].strip("'\"")]
        assert "?" not in words or "can" in words


@pytest.mark.parametrize(
    "prompt",
    ["fetch my page about cats", "send an email to Ann about lunch", "open an issue in widgets"],
)
def test_a_typed_field_is_never_filled_from_words_that_are_left_over(prompt: str) -> None:
    tool, arguments = _planned(prompt)

    assert tool not in {"web_fetch", "send_email", "create_issue"}
    assert "cats" not in arguments.values()


def test_the_same_request_has_the_same_plan() -> None:
    prompts = _DATA["prompts"]

    assert [_asked(one) for one in prompts] == [_asked(one) for one in prompts]
