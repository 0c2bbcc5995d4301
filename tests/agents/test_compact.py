"""A conversation over the window is cut so that a model can go on from it (C6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agents.test_history import IDS, open_and_sound, spoken, user

from openfang.agents.compact import fitted, ordered, size
from openfang.agents.history import paired
from openfang.core.agents import Message, Speaker, Wish

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.requirement("C6.4")
many = settings(max_examples=400, deadline=None)


def calls(ids: Sequence[str], length: int) -> list[Message]:
    wishes = tuple(Wish(id=one, tool="t", arguments={"text": "x" * (length // 9)}) for one in ids)
    return [
        Message(speaker=Speaker.AGENT, text="so", wishes=wishes),
        *(Message(speaker=Speaker.TOOL, text="r" * length, answers=one) for one in reversed(ids)),
    ]


def exchange(said: str, made: list[list[Message]], answer: str) -> list[Message]:
    last = [Message(speaker=Speaker.AGENT, text=answer)] if answer else []
    return [user(said), *joined(made), *last]


def joined(groups: Sequence[list[Message]]) -> list[Message]:
    return [message for group in groups for message in group]


steps = st.builds(calls, st.lists(st.sampled_from(IDS), unique=True), st.integers(0, 3000))
words = st.text(max_size=400)
exchanges = st.builds(exchange, words, st.lists(steps, max_size=5), words)
conversations = st.lists(exchanges, max_size=8).map(joined)


@many
@given(conversations, st.integers(1, 2000))
def test_what_fits_is_sound_and_keeps_what_the_user_said_last(
    history: list[Message], window: int
) -> None:
    kept = fitted(history, window)

    assert open_and_sound(kept)
    assert fitted(kept, window) == kept
    if size(history) <= window:
        assert kept == ordered(history)
    if spoken(history):
        last, was = spoken(kept)[-1], spoken(history)[-1]
        assert kept[last] == history[was]
        if size(kept) > window:
            assert kept[0] == history[was]
            assert len([one for one in kept if one.speaker is Speaker.AGENT]) <= 1
            assert all(len(one.text) <= 240 for one in kept if one.speaker is Speaker.TOOL)


@many
@given(conversations)
def test_results_stand_in_the_order_of_their_calls(history: list[Message]) -> None:
    kept = ordered(history)

    assert paired(kept) == kept
    for number, message in enumerate(kept):
        found = [one.answers for one in kept[number + 1 : number + 1 + len(message.wishes)]]
        assert found == [wish.id for wish in message.wishes]


def test_the_oldest_results_are_shortened_first_and_say_so() -> None:
    history = [user("one"), *calls("a", 4000), user("two"), *calls("b", 4000)]

    kept = fitted(history, 1500)

    assert kept[2].text == "r" * 200 + " [compacted: 4000 characters]"
    assert kept[-1].text == "r" * 4000
    assert history[2].text == "r" * 4000


def test_exchanges_that_do_not_fit_leave_a_note_of_what_was_asked() -> None:
    history = [
        message
        for number in range(50)
        for message in (
            user(f"question {number}\nand more"),
            Message(speaker=Speaker.AGENT, text="long " * 100),
        )
    ]

    kept = fitted(history, 500)

    assert size(kept) <= 500
    assert kept[0].text.startswith("[compacted: said before]\n")
    assert "question 30" in kept[0].text
    assert "and more" not in kept[0].text
    assert kept[-2:] == history[-2:]


def test_a_run_of_many_steps_keeps_the_task_and_the_newest_step() -> None:
    run = [user("the task"), *(one for _ in range(50) for one in calls("ab", 45_000))]

    kept = fitted(run, 4000)

    assert size(kept) <= 4000
    assert kept[0] == user("the task")
    assert kept[1].text == "[compacted: calls made before]\nt"
    assert [one.answers for one in kept[-2:]] == ["a", "b"]


def test_somebody_who_writes_like_a_note_is_not_cut_away() -> None:
    said = user("[compacted: said before]\n" + "x" * 4000)

    assert fitted([user("first"), said], 10) == [said]
