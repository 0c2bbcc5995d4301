"""Calls of ours at peers: found by chain and by who comes back, deepest first, until they end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openfang.core.labels import Labels
from openfang.core.trace import Chain, new_chain
from openfang.guard.away import Away, Departed

pytestmark = pytest.mark.requirement("C8.4")


def departed(chain: Chain, who: str = "", root: str = "key:me") -> Departed:
    return Departed(chain=chain, root=root, labels=Labels.NONE, who=who)


def test_the_deepest_call_of_a_chain_is_found_by_its_trace() -> None:
    away, chain = Away(), new_chain()
    first, second = departed(chain), departed(chain.deeper("agent:a"))
    away.leave(second)
    away.leave(first)
    assert away.of_chain(chain, "a2a:peer") is second
    assert away.of_chain(new_chain(), "a2a:peer") is None
    away.back(second)
    assert away.of_chain(chain, "a2a:peer") is first


def test_a_chain_is_found_by_either_name_of_its_trace() -> None:
    away, chain = Away(), replace(new_chain(), starry_id="star")
    one = departed(chain)
    away.leave(one)
    assert away.of_chain(replace(new_chain(), starry_id="star"), "a2a:peer") is one
    assert away.of_chain(replace(chain, starry_id="made-up"), "a2a:peer") is one
    assert away.of_chain(new_chain(), "a2a:peer") is None


def test_who_began_a_chain_may_call_twice_at_once() -> None:
    away, chain = Away(), new_chain()
    away.leave(departed(chain, root="key:me"))
    assert away.of_chain(chain, "key:me") is None


def test_who_comes_back_is_known_although_it_says_nothing_of_a_chain() -> None:
    away = Away()
    one, deeper = departed(new_chain(), "a2a:peer"), departed(new_chain().deeper("a"), "a2a:peer")
    for call in (one, deeper, departed(new_chain())):
        away.leave(call)
    assert away.of_peer("a2a:peer") is deeper
    assert away.of_peer("a2a:other") is away.of_peer("") is None


def test_nothing_is_left_of_calls_that_have_ended() -> None:
    away, chain = Away(), replace(new_chain(), starry_id="star")
    calls = [departed(chain, "a2a:peer") for _ in range(2)]
    for number, call in enumerate(calls, 1):
        away.leave(call)
        assert len(away) == number
    for call in calls:
        assert away.of_peer("a2a:peer") is not None
        away.back(call)
    assert len(away) == 0
    assert away == Away()
