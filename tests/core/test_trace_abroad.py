"""Who waits in a chain is told apart from those of the same name on other nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.core.trace import abroad, at_home, read_ancestors

pytestmark = pytest.mark.requirement("C8.1", "C8.2")

names = st.lists(st.sampled_from(["agent:x", "agent:y", "a2a:z", "agent:x@n1", "unknown@n2"]))


def test_ours_are_named_with_the_node_and_others_as_they_came() -> None:
    assert abroad(("agent:x@n2", "agent:x", "a2a:n1"), "n1") == (
        "agent:x@n2",
        "agent:x@n1",
        "a2a:n1@n1",
    )


def test_those_that_come_back_are_ours_again_and_the_others_are_not() -> None:
    assert at_home(("agent:x@n2", "agent:x@n1", "agent:x@n11"), "n1") == (
        "agent:x@n2",
        "agent:x",
        "agent:x@n11",
    )


@given(names)
def test_what_went_abroad_and_came_back_is_what_it_was(before: list[str]) -> None:
    ours = at_home(tuple(before), "n1")
    told = abroad(ours, "n1")
    assert all("@" in name for name in told)
    assert at_home(read_ancestors(",".join(told)), "n1") == ours
