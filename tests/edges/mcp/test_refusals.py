"""How a refusal reads on the wire."""

from __future__ import annotations

import pytest

from openfang.core.errors import GuardTripped, NotFound
from openfang.edges.mcp.refusals import sentence

pytestmark = pytest.mark.requirement("C4.6")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("It is over.", "It is over. Way out: begin again."),
        ("It is over", "It is over. Way out: begin again."),
        ("Is it over?", "Is it over? Way out: begin again."),
    ],
)
def test_the_way_out_is_a_sentence_of_its_own(message: str, said: str) -> None:
    assert sentence(GuardTripped(message, rule="loop", way_out="begin again")) == said


def test_without_a_way_out_it_is_said_as_it_is() -> None:
    assert sentence(NotFound("Nothing is there")) == "Nothing is there"
