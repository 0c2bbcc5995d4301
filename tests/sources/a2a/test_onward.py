"""Whose call a message goes on with is told to the peer, in words that hold on every node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openfang.core.calls import Call, Caller, Grants
from openfang.core.labels import Labels
from openfang.core.trace import Chain, new_chain
from openfang.protocols.hops.words import words_of
from openfang.sources.a2a.onward import metadata_of
from openfang.sources.hops import PlainHop, told_of

pytestmark = pytest.mark.requirement("C8.1", "C8.2", "C5.8")
CALLER = Caller(id="key:me", grants=Grants(tools=("*",)))


def chain(*ancestors: str, **more: int) -> Chain:
    return replace(new_chain(), ancestors=ancestors, depth=len(ancestors) + 1, **more)


def told(one: Chain) -> dict[str, object]:
    return PlainHop(one, told_of(one, "n1", Labels.NONE)).words()


def test_who_waits_here_is_named_with_this_node() -> None:
    said = told_of(chain("agent:x@n2", "agent:x"), "n1", Labels.NONE)
    assert said.ancestors == ("agent:x@n2", "agent:x@n1")


def test_a_chain_that_is_deeper_than_its_names_stays_so() -> None:
    said = told_of(replace(chain("agent:x"), depth=4), "n1", Labels.NONE)
    assert said.ancestors == ("unknown", "unknown", "agent:x@n1")


def test_what_the_caller_says_of_the_chain_does_not_count() -> None:
    forged = {"openfang/chain": "", "traceparent": "00-1", "colour": "red"}
    call = Call(tool="a2a:peer", caller=CALLER, arguments={"metadata": forged})
    deep = chain("agent:x")
    sent = metadata_of(call, told(deep))
    assert sent["openfang/chain"] == words_of(told_of(deep, "n1", Labels.NONE))
    assert sent["traceparent"] == deep.traceparent
    assert sent["colour"] == "red"


def test_what_a_caller_adds_speaks_neither_for_us_nor_to_another_agent() -> None:
    added = {"openfang": {"mode": "x"}, "OpenFang/chain": "a", "Agent": "other", "agents": 1}
    call = Call(tool="a2a:peer", caller=CALLER, arguments={"metadata": added}, meta=added)
    sent = metadata_of(call, told(chain("agent:x")))
    assert set(sent) == {"agents", "openfang/chain", "traceparent"}
