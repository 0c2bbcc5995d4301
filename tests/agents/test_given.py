"""What comes with a message: a history in place of the session's own, wishes, tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given as draws
from hypothesis import settings
from hypothesis import strategies as st

from openfang.agents.given import NOTHING, Given, foreign, joined, parted, read_given
from openfang.agents.history import unanswered
from openfang.agents.spec import Mind
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.tools import Tool
from openfang.storage.database import at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.requirement("C6.4", "C12.4")


async def nothing(_: str) -> None:
    """Find no blob."""


def said(text: str, *wishes: str) -> Message:
    made = tuple(Wish(id=one, tool="t") for one in wishes)
    return Message(speaker=Speaker.AGENT, text=text, wishes=made)


def asked(text: str) -> Message:
    return Message(speaker=Speaker.USER, text=text)


def result(wish: str, text: str = "done") -> Message:
    return Message(speaker=Speaker.TOOL, text=text, answers=wish)


def test_what_did_not_come_changes_nothing() -> None:
    assert at_once(read_given({"message": "hi", "session": "a"}, nothing)) is NOTHING
    mind = Mind(system="Be kind.", max_tokens=10, temperature=0.5)
    assert NOTHING.mind(mind) == mind
    assert NOTHING.looked_at(20) == 20
    assert Given(history=()).looked_at(20) == 0


def test_a_caller_adds_words_and_tightens() -> None:
    mind = Mind(system="Be kind.", max_tokens=10, temperature=0.5)
    wished = Given(instructions="Be brief.", temperature=0.0, max_tokens=99).mind(mind)
    assert wished.system.startswith("Be kind.\n\n")
    assert wished.system.endswith("\nBe brief.")
    assert (wished.temperature, wished.max_tokens) == (0.0, 10)
    assert Given(max_tokens=3).mind(mind).max_tokens == 3


def test_a_callers_tool_stands_in_the_place_of_one_of_the_agents() -> None:
    own = [
        Tool(id=f"builtin:{name}", kind=Kind.BUILTIN, source=name, name=name, wire_name=name)
        for name in "ab"
    ]
    given = at_once(read_given({"tools": [{"name": "b"}, {"name": "c"}]}, nothing))
    assert [tool.id for tool in given.beside(own)] == ["builtin:a", "client:b", "client:c"]
    assert NOTHING.beside(own) is own


def test_the_agents_own_calls_since_somebody_spoke_are_put_back() -> None:
    stored = [asked("a"), said("", "own"), result("own"), said("", "own2", "theirs")]
    stored += [result("own2"), result("theirs", "lost")]
    given = [asked("before"), said("b"), asked("a"), said("", "theirs"), result("theirs", "x")]
    whole = joined(given, stored)
    assert whole == [
        *(asked("before"), said("b"), asked("a"), said("", "own"), result("own")),
        *(said("", "own2", "theirs"), result("own2"), result("theirs", "x")),
    ]
    assert joined(given, [asked("a"), said("other", "else")]) == given
    assert parted(whole, asked(""), given)[1] == [result("theirs", "x")]
    assert parted(given, asked("more"), given) == (given, [asked("more")])


def test_words_of_others_are_told_from_the_agents_own() -> None:
    stored = [asked("a"), said("Let me see."), said("It is five.")]
    own = [asked("a"), said("Let me see.\n\nIt is five. ")]
    assert foreign(own, stored) == Labels.NONE
    assert foreign([*own, said("Trust me.")], stored) == Labels.UNTRUSTED_AGENT
    assert foreign([*own, result("x")], stored) == Labels.EXTERNAL_NETWORK
    assert foreign([said("", "x")], ()) == Labels.NONE


_IDS = st.sampled_from("abcd")
_CALL: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({"id": _IDS, "tool": _IDS})
_TURN: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "text": _IDS}),
    st.fixed_dictionaries({"role": st.just("agent"), "calls": st.lists(_CALL, max_size=3)}),
    st.fixed_dictionaries({"role": st.just("tool"), "answers": _IDS}),
)


@draws(st.lists(_TURN, max_size=8), st.lists(_TURN, max_size=8))
@settings(max_examples=300, deadline=None)
def test_no_call_of_a_history_is_ever_open(
    given: Sequence[dict[str, Any]], stored: Sequence[dict[str, Any]]
) -> None:
    read, kept = (at_once(read_given({"history": one}, nothing)).history for one in (given, stored))
    assert read is not None
    assert kept is not None
    for message in (asked(""), asked("more")):
        before, now = parted(joined(read, kept), message, read)
        assert unanswered([*before, *now]) == ()
