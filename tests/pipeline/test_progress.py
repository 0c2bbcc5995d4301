"""Progress on its way to the caller."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.core.agents import Ended, Made, Wanted, Wish, Words
from openfang.core.progress import Progress
from openfang.pipeline.progress import Passing
from openfang.testing import ManualClock

pytestmark = pytest.mark.requirement("C3.5")


def _redact(text: str) -> str:
    return text.replace("hunter2", "***")


def test_a_flood_is_cut_to_what_a_person_can_read() -> None:
    heard: list[Any] = []
    clock = ManualClock()
    passing = Passing(heard.append, _redact, clock)

    for step in range(10_000):
        passing(Progress(progress=step))
    assert len(heard) == 100

    clock.advance(1.0)
    for step in range(10_000):
        passing(Progress(progress=10_000 + step))
    assert len(heard) == 120


def test_what_a_tool_says_on_the_way_is_short_and_holds_no_secret() -> None:
    heard: list[Any] = []
    passing = Passing(heard.append, _redact, ManualClock())

    passing(Progress(progress=1, total=2, message="with hunter2" + "x" * 10_000))

    assert heard[0].message.startswith("with ***x")
    assert len(heard[0].message) <= 500
    assert heard[0].total == 2


def test_a_secret_that_comes_in_pieces_is_not_told() -> None:
    heard: list[Any] = []
    passing = Passing(heard.append, _redact, ManualClock())

    for piece in ("It is hun", "ter", "2", " and", " mo", "re"):
        passing(Words(piece))
    passing(Ended(answer="It is hunter2 and more"))

    assert "".join(one.text for one in heard[:-1]) == "It is *** and more"
    assert heard[-1].answer == "It is *** and more"


def test_what_a_run_wants_and_what_came_of_it_hold_no_secret() -> None:
    heard: list[Any] = []
    passing = Passing(heard.append, _redact, ManualClock())
    plain, telling = (
        Wish(id=key, tool="echo", arguments={"text": text})
        for key, text in (("1", "hello"), ("2", "hunter2"))
    )

    passing(Words("Well"))
    passing(Wanted(plain))
    passing(Wanted(telling))
    passing(Made(wish=telling, outcome="ok", text="it said hunter2"))

    assert heard == [
        Words("Well"),
        Wanted(plain),
        Wanted(Wish(id="2", tool="echo", arguments={"text": "***"})),
        Made(wish=telling, outcome="ok", text="it said ***"),
    ]
    assert heard[1].wish.arguments is plain.arguments


def test_words_are_told_as_soon_as_they_end_and_one_that_never_does_in_pieces() -> None:
    heard: list[Any] = []
    passing = Passing(heard.append, _redact, ManualClock())

    for piece in ("one", " two", "\nthree", "x" * 5000):
        passing(Words(piece))

    assert [one.text for one in heard] == ["one ", "two\n", "three" + "x" * 5000]
