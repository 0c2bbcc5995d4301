"""A signed chain is used once, for as long as it is good; without room none is believed."""

from __future__ import annotations

import pytest

from openfang.guard.nonces import Nonces

pytestmark = pytest.mark.requirement("C8.4")


def test_one_is_used_once_until_it_has_expired() -> None:
    nonces = Nonces()
    assert nonces.use("a", ends=10, now=0)
    assert nonces.use("b", ends=10, now=0)
    assert not nonces.use("a", ends=10, now=10)
    assert len(nonces) == 2
    assert nonces.use("a", ends=20, now=11)
    assert len(nonces) == 1


def test_without_room_none_is_believed_until_one_has_expired() -> None:
    nonces = Nonces(capacity=2)
    assert [nonces.use(name, ends=10, now=0) for name in "abc"] == [True, True, False]
    assert nonces.use("c", ends=20, now=11)


def test_there_is_room_for_a_hundred_thousand() -> None:
    nonces = Nonces()
    used = sum(nonces.use(str(number), ends=10, now=0) for number in range(100_001))
    assert used == 100_000
