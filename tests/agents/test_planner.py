"""The embedded planner: what it understands, what it leaves alone, and that it never guesses."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.agents.planner.offer import Offer
from openfang.agents.planner.plan import Abstained, Planned, Planner

pytestmark = pytest.mark.requirement("C6.5")

_DATA = json.loads((Path(__file__).parents[1] / "data/planner/prompts.json").read_text())
_DESTRUCTIVE = {"delete_file", "drop_table"}
_DESTRUCTIVE_WORDS = ("delete", "remove", "erase", "drop", "destroy", "purge", "wipe", "rm ")


@cache
def _planner() -> Planner:
    return Planner(
        [Offer(one["name"], one["description"], one["inputSchema"]) for one in _DATA["tools"]]
    )


def _held_out(prompt: str) -> bool:
    return sha256(f"openfang-planner-1:{prompt}".encode()).digest()[-1] % 2 == 0


def _planned(prompt: str) -> tuple[str | None, dict[str, Any]]:
    match _planner().plan(prompt):
        case Planned(offer, arguments):
            return offer.name, dict(arguments)
        case Abstained():
            return None, {}


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned on", "held out"])
def test_it_finds_the_tool_and_its_arguments(held_out: bool) -> None:  # noqa: FBT001 - a parameter
    prompts = [one for one in _DATA["prompts"] if _held_out(one["prompt"]) is held_out]
    found = [(_planned(one["prompt"]), one) for one in prompts]

    tools = sum(got[0] == one["tool"] for got, one in found)
    exact = sum(got == (one["tool"], one["arguments"]) for got, one in found)

    assert len(prompts) >= 30
    assert tools / len(prompts) >= 0.90
    assert exact / len(prompts) >= 0.75


def test_small_talk_and_traps_move_nothing() -> None:
    idle = [one["prompt"] for one in _DATA["prompts"] if one["tool"] is None]

    assert [prompt for prompt in idle if _planned(prompt)[0]] == []


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_nothing_destructive_is_chosen_without_a_word_for_it(text: str) -> None:
    tool, _ = _planned(text)

    assert tool not in _DESTRUCTIVE or any(word in text.lower() for word in _DESTRUCTIVE_WORDS)


@pytest.mark.parametrize(
    "prompt",
    ["fetch my page about cats", "send an email to Ann about lunch", "open an issue in widgets"],
)
def test_a_typed_field_is_never_filled_from_words_that_are_left_over(prompt: str) -> None:
    tool, arguments = _planned(prompt)

    assert tool not in {"web_fetch", "send_email", "create_issue"}
    assert "cats" not in arguments.values()


def test_the_same_request_has_the_same_plan() -> None:
    prompts = [one["prompt"] for one in _DATA["prompts"]]

    assert [_planned(one) for one in prompts] == [_planned(one) for one in prompts]


def test_a_tool_that_is_marked_destructive_needs_a_word_for_it_whatever_its_name() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    planner = Planner([Offer("tidy_path", "Read and tidy a path.", schema, destructive=True)])

    assert isinstance(planner.plan("read notes/a.txt"), Abstained)


def test_without_tools_it_abstains() -> None:
    assert isinstance(Planner([]).plan("read notes/a.txt"), Abstained)
