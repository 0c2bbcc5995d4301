"""Streams that are open: not too many, and not all of them one caller's."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from openfang.core.errors import GuardTripped
from openfang.edges.api.staying import Streams

pytestmark = pytest.mark.requirement("C12.2")


def test_one_caller_may_have_a_half_and_all_together_the_whole() -> None:
    streams = Streams(4)
    with ExitStack() as stack:
        for caller in ("a", "a", "b"):
            stack.enter_context(streams.one(caller))
        with pytest.raises(GuardTripped, match="a has 2 streams open") as refused, streams.one("a"):
            pass
        assert refused.value.rule == "too_many_streams"
        stack.enter_context(streams.one("c"))
        with pytest.raises(GuardTripped), streams.one("d"):
            pass
        assert len(streams) == 4
    assert len(streams) == 0
    with streams.one("a"):
        assert len(streams) == 1


def test_where_there_is_room_for_one_somebody_has_it() -> None:
    with Streams(1).one("a"):
        pass
