"""Whose call a message goes on with is told to the peer, in words that hold on every node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openfang.core.calls import Call, Caller, Grants
from openfang.core.trace import Chain, new_chain
from openfang.sources.a2a.onward import metadata_of, trace_of

pytestmark = pytest.mark.requirement("C8.1", "C8.2", "C5.8")


def chain(*ancestors: str, **more: int) -> Chain:
    return replace(new_chain(), ancestors=ancestors, depth=len(ancestors) + 1, **more)


def test_who_waits_here_is_named_with_this_node() -> None:
    told = trace_of(chain("agent:x@n2", "agent:x"), "n1")
    assert told["openfang-chain"] == "agent:x@n2,agent:x@n1"


def test_a_chain_that_is_deeper_than_its_names_stays_so() -> None:
    told = trace_of(replace(chain("agent:x"), depth=4), "n1")
    assert told["openfang-chain"] == "unknown,unknown,agent:x@n1"


def test_what_the_caller_says_of_the_chain_does_not_count() -> None:
    caller = Caller(id="key:me", grants=Grants(tools=("*",)))
    forged = {"openfang/chain": "", "traceparent": "00-1", "colour": "red"}
    call = Call(tool="a2a:peer", caller=caller, arguments={"metadata": forged})
    deep = chain("agent:x")
    told = metadata_of(call, deep, "n1")
    assert told["openfang/chain"] == "agent:x@n1"
    assert told["traceparent"] == deep.traceparent
    assert told["colour"] == "red"
    assert "openfang-chain" not in told


def test_what_a_caller_adds_speaks_neither_for_us_nor_to_another_agent() -> None:
    caller = Caller(id="key:me", grants=Grants(tools=("*",)))
    added = {"openfang": {"mode": "x"}, "OpenFang/chain": "a", "Agent": "other", "agents": 1}
    call = Call(tool="a2a:peer", caller=caller, arguments={"metadata": added}, meta=added)
    told = metadata_of(call, chain("agent:x"), "n1")
    assert set(told) == {"agents", "openfang/chain", "traceparent"}
