"""Conversations are cut so that a model can go on from what is left, whatever happened before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.agents.history import closed, lost, paired, resumed, trimmed, unanswered
from openfang.core.agents import Message, Speaker, Wish

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.requirement("C6.4")

IDS = ("a", "b", "c", "d")
many = settings(max_examples=300, deadline=None)


def user(text: str = "go") -> Message:
    return Message(speaker=Speaker.USER, text=text)


def agent(*wishes: str, text: str = "") -> Message:
    made = tuple(Wish(id=one, tool="file_read", arguments={"path": one}) for one in wishes)
    return Message(speaker=Speaker.AGENT, text=text, wishes=made)


def result(answers: str) -> Message:
    return Message(speaker=Speaker.TOOL, text=f"<{answers}>", answers=answers)


# Anything at all: results that nobody asked for, calls that nobody answered, ids that come again.
anything = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=3)),
        st.lists(st.sampled_from(IDS), unique=True, max_size=4).map(lambda ids: agent(*ids)),
        st.sampled_from(IDS).map(result),
    ),
    max_size=40,
)
most = st.integers(0, 45)


def open_and_sound(history: Sequence[Message]) -> bool:
    """Each call has one result right behind it, save the last ones; no result is without a call."""
    waiting: set[str] = set()
    for message in history:
        if message.speaker is not Speaker.TOOL:
            if waiting:
                return False
            waiting = {wish.id for wish in message.wishes}
        elif message.answers in waiting:
            waiting.remove(message.answers)
        else:
            return False
    return True


def spoken(history: Sequence[Message]) -> list[int]:
    return [n for n, message in enumerate(history) if message.speaker is Speaker.USER]


@many
@given(anything)
def test_each_call_has_its_result_and_each_result_its_call(history: list[Message]) -> None:
    whole = paired(history)
    assert open_and_sound(whole)
    assert paired(whole) == whole
    said = [one for one in history if one.speaker is not Speaker.TOOL]
    assert [one for one in whole if one.speaker is not Speaker.TOOL] == said
    assert {wish.id for wish in unanswered(whole)} == {wish.id for wish in unanswered(history)}
    if open_and_sound(history):
        assert whole == history


@many
@given(anything, most)
def test_what_is_cut_can_be_gone_on_with(history: list[Message], most: int) -> None:
    whole, kept = paired(history), trimmed(history, most)
    assert open_and_sound(kept)
    starts = spoken(whole)
    if len(whole) <= most:
        assert kept == whole
    elif starts:
        assert kept == whole[len(whole) - len(kept) :]
        assert kept[0].speaker is Speaker.USER
        assert kept[len(kept) - (len(whole) - starts[-1]) :] == whole[starts[-1] :]
        longer = [len(whole) - start for start in starts if len(whole) - start > len(kept)]
        assert len(kept) <= most or kept == whole[starts[-1] :]
        assert all(length > most for length in longer)
    else:
        assert len(kept) <= most


@many
@given(anything, most)
def test_before_a_person_speaks_again_nothing_is_left_open(
    history: list[Message], most: int
) -> None:
    kept = closed(trimmed(history, most))
    assert unanswered(kept) == ()
    assert open_and_sound([*kept, user()])
    assert closed(kept) == kept


@many
@given(anything, st.frozensets(st.sampled_from(IDS)), st.frozensets(st.sampled_from(IDS)))
def test_what_was_begun_is_made_again_only_if_that_is_safe(
    history: list[Message], begun: frozenset[str], safe: frozenset[str]
) -> None:
    whole = paired(history)
    after = resumed(whole, begun, lambda wish: wish.id in safe)
    assert open_and_sound(after)
    assert after[: len(whole)] == whole
    left = {wish.id for wish in unanswered(whole)}
    assert {wish.id for wish in unanswered(after)} == {
        one for one in left if one not in begun or one in safe
    }
    told = after[len(whole) :]
    assert {one.answers for one in told} == left & begun - safe
    assert all(one.is_error and "not known" in one.text for one in told)


def test_a_last_turn_that_is_longer_than_the_window_stays_whole() -> None:
    last = [user(), *(message for one in IDS * 5 for message in (agent(one), result(one)))]
    history = [user("before"), agent(text="yes"), *last, agent(text="there")]
    assert trimmed(history, 5) == [*last, agent(text="there")]
    assert trimmed(last, 5) == last


def test_a_run_that_was_cut_off_does_not_spoil_what_comes_after_it() -> None:
    history = [user(), agent("a", "b"), result("b"), user("again"), agent(text="yes")]
    kept = trimmed(history, 20)
    assert [one.answers for one in kept] == ["", "", "b", "a", "", ""]
    assert [one.is_error for one in kept] == [False, False, False, True, False, False]


def test_an_id_that_comes_again_is_another_call() -> None:
    history = [user(), agent("a"), result("a"), agent("a")]
    assert [wish.id for wish in unanswered(history)] == ["a"]
    assert trimmed(history, 20) == history


def test_the_result_of_a_call_that_waited_for_an_answer_stands_behind_it() -> None:
    asks, other = [user("ask"), agent("a", "b")], [user("hello"), agent(text="hi")]
    history = [*asks, result("b"), *other, result("a"), agent(text="thanks")]
    whole = [*asks, result("b"), result("a"), *other, agent(text="thanks")]
    assert paired(history) == whole
    assert paired(history[:-2]) == [*asks, result("b"), lost(asks[1].wishes[0]), *other]


def test_a_result_belongs_to_the_last_call_of_its_name() -> None:
    history = [agent("a"), user("again"), agent("a"), result("a"), user()]
    lost_one = lost(Wish(id="a", tool="file_read", arguments={"path": "a"}))
    assert paired(history) == [history[0], lost_one, *history[1:]]
