"""What is listed says by which nodes it came, and is not listed again where it has been."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.protocols.hops.path import VIA, from_elsewhere, passed_on, via_of

pytestmark = pytest.mark.requirement("C8.2")


def test_a_prompt_that_comes_back_is_left_out_and_keeps_what_else_it_says() -> None:
    prompt: dict[str, Any] = {"name": "review", "_meta": {"x": 1}}
    there = passed_on(passed_on(prompt, "a"), "b")
    assert there == {"name": "review", "_meta": {"x": 1, VIA: ["a", "b"]}}
    assert list(from_elsewhere([there, prompt], "a")) == [prompt]
    assert list(from_elsewhere([there, prompt], "c")) == [there, prompt]


@pytest.mark.parametrize("said", [None, 7, [], {VIA: "a"}, {VIA: [1, None, "a" * 101]}, {VIA: {}}])
def test_what_makes_no_sense_says_nothing(said: object) -> None:
    assert via_of({"_meta": said}) == ()
