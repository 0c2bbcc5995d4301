"""How calls leave and arrive: nobody loosens anything, and what nodes sign holds once."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from openfang.app.nodes.hops import Arrived, NodeHops
from openfang.config.merge import frozen
from openfang.config.models import Config
from openfang.core.calls import Admitted, Call, Caller
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import text_result
from openfang.core.tools import Tool
from openfang.core.trace import Chain, Told, joined, new_chain, read_chain
from openfang.guard.recursion import ChainLimits, Chains
from openfang.protocols.hops.token import sealed
from openfang.protocols.hops.words import ANSWER, ASKS, CHAIN, read_told, words_of

pytestmark = pytest.mark.requirement("C8.4", "C9.4")


LIMITS = ChainLimits(usd=8.0)


@dataclass
class Still:
    """A clock that goes when it is told to."""

    seconds: float = 1_000.0

    def monotonic(self) -> float:
        return self.seconds

    def time_ns(self) -> int:
        return int(self.seconds * 1e9)


@dataclass
class Node:
    """One node, without the rest of the house."""

    name: str
    clock: Still
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    limits: ChainLimits = LIMITS
    hops: NodeHops = field(init=False)

    def __post_init__(self) -> None:
        chains = Chains(self.limits)
        self.hops = NodeHops(
            node=self.name, clock=self.clock, chains=chains, signing=lambda: self.key
        )

    @property
    def entry(self) -> dict[str, Any]:
        public = urlsafe_b64encode(self.key.public_key().public_bytes_raw()).decode()
        url = f"https://{self.name}.example"
        return {"name": self.name, "url": url, "public_key": public}

    def knows(self, *others: Node, **more: Any) -> None:
        nodes = [{**other.entry, **more} for other in others]
        agents = [
            {"name": other.name, "url": f"https://{other.name}.example/card"} for other in others
        ]
        config = {"nodes": nodes, "a2a": {"external_agents": agents}}
        self.hops.configure(Config.model_validate(frozen(config)))

    def leave(self, to: str, chain: Chain | None = None, labels: Labels = Labels.NONE) -> Any:
        """Send a call on its way; it is counted as the pipeline counts it."""
        tool = Tool(id=f"a2a:{to}", kind=Kind.A2A, source=to, name=to)
        call = Call(tool=tool.id, caller=Caller(id="key:me"), chain=chain or new_chain())
        assert self.hops.chains.enter(call, tool, self.clock.seconds) is None
        return self.hops.depart(
            Admitted(call=call, tool=tool, stamp=b"", timeout=1.0, labels=labels)
        )

    def arrive(self, words: dict[str, Any], caller: str = "key:peer") -> tuple[Chain, Arrived]:
        chain = read_chain(traceparent=words.get("traceparent"), told=read_told(words.get(CHAIN)))
        return chain, self.hops.arrive(chain, Caller(id=caller))


def pair() -> tuple[Node, Node]:
    clock = Still()
    one, other = Node("a", clock), Node("b", clock)
    one.knows(other)
    other.knows(one)
    return one, other


def test_a_signed_chain_is_gone_on_with_as_it_was_signed() -> None:
    a, b = pair()
    deadline = a.clock.seconds + 10
    chain = replace(new_chain().deeper("agent:x", deadline=deadline), starry_id="star")
    hop = a.leave("b", chain, Labels.PRIVATE)
    words = hop.words()
    assert isinstance(words[CHAIN], str)
    _, arrived = b.arrive(words)
    assert (arrived.peer, arrived.labels) == ("a", Labels.PRIVATE)
    assert arrived.chain.ancestors == ("agent:x@a", "a2a:b@a")
    assert arrived.chain.depth == 3
    assert arrived.chain.deadline is not None
    assert arrived.chain.deadline < deadline
    assert arrived.chain.purse is not None
    assert (arrived.chain.purse.calls, arrived.chain.purse.usd) == (31, 4.0)


def test_what_was_lent_comes_back_but_for_what_was_used() -> None:
    a, b = pair()
    chain = new_chain()
    hop = a.leave("b", chain)
    said, arrived = b.arrive(hop.words())
    assert a.hops.chains.left(chain) == (32, 4.0)
    agent = Tool(id="agent:y", kind=Kind.AGENT, source="y", name="y")
    for _ in range(3):
        call = Call(tool=agent.id, caller=Caller(id="key:peer"), chain=arrived.chain)
        assert b.hops.chains.enter(call, agent, b.clock.seconds) is None
    b.hops.chains.pay(arrived.chain, 1.5)
    token = b.hops.vouch(said.claims, Labels.PII)
    result = hop.back(text_result("ok", labels=Labels.EXTERNAL_NETWORK), {ANSWER: token})
    assert (result.labels, result.vouched) == (Labels.PII, True)
    assert a.hops.chains.left(chain) == (63 - 3, 8.0 - 1.5)
    hop.end()
    assert len(a.hops.away) == 0


def test_what_nobody_vouches_for_stays_lent_and_only_adds_labels() -> None:
    a, b = pair()
    chain = new_chain()
    hop = a.leave("b", chain)
    said, _ = b.arrive(hop.words())
    token = b.hops.vouch(said.claims, Labels.NONE)
    forged = sealed("ofr1.", {"re": "x", "labels": []}, Ed25519PrivateKey.generate().sign)
    usual = text_result("ok", labels=Labels.EXTERNAL_NETWORK)
    for bad in (None, "", forged, token[:-4] + "AAAA", token.replace("ofr1", "ofc1")):
        beside = {ANSWER: bad, "openfang/labels": {"labels": ["secret"]}}
        result = hop.back(usual, beside)
        assert (result.labels, result.vouched) == (Labels.EXTERNAL_NETWORK | Labels.SECRET, False)
    assert a.hops.chains.left(chain) == (32, 4.0)
    other = a.leave("b")
    other.words()
    assert not other.back(usual, {ANSWER: token}).vouched, "it answers another question"


def test_a_token_is_good_once_for_one_node_and_for_a_minute() -> None:
    a, b = pair()
    c = Node("c", a.clock)
    c.knows(a)
    words = a.leave("b").words()
    assert c.arrive(words)[1].labels == Labels.UNTRUSTED_AGENT
    assert b.arrive(words)[1].labels == Labels.NONE
    assert b.arrive(words)[1].labels == Labels.UNTRUSTED_AGENT
    late = a.leave("b").words()
    b.clock.seconds += 66
    assert b.arrive(late)[1].labels == Labels.UNTRUSTED_AGENT


def test_one_request_is_judged_once_however_many_calls_it_makes() -> None:
    a, b = pair()
    chain, first = b.arrive(a.leave("b").words())
    again = b.hops.arrive(chain, Caller(id="key:peer"))
    assert again.labels == first.labels == Labels.NONE
    assert again.chain.purse is first.chain.purse


def test_a_node_that_began_anew_believes_nothing_from_before() -> None:
    a, b = pair()
    words = a.leave("b").words()
    b.clock.seconds += 1
    anew = Node("b", b.clock, key=b.key)
    anew.knows(a)
    assert anew.arrive(words)[1].labels == Labels.UNTRUSTED_AGENT


def test_a_signature_holds_with_the_key_that_the_node_comes_in_with() -> None:
    a, b = pair()
    b.knows(a, comes_as="friend")
    assert b.arrive(a.leave("b").words())[1].labels == Labels.UNTRUSTED_AGENT
    arrived = b.arrive(a.leave("b").words(), "key:friend")[1]
    assert (arrived.labels, arrived.peer) == (Labels.NONE, "a")


def test_whoever_is_called_is_known_by_the_key_they_come_in_with() -> None:
    a = Node("a", Still())
    servers = [
        {
            "name": "s",
            "transport": {"type": "http", "url": "https://s.example"},
            "comes_as": "server",
        }
    ]
    agents = [{"name": "f", "url": "https://f.example", "comes_as": "stranger"}]
    config = {"mcp_servers": servers, "a2a": {"external_agents": agents}}
    a.hops.configure(Config.model_validate(frozen(config)))
    assert a.hops.book.peers == {"key:server": "s", "key:stranger": "f"}
    hop = a.leave("f", new_chain().deeper("agent:x"), Labels.PRIVATE)
    _, arrived = a.arrive({}, "key:stranger")
    assert (arrived.peer, arrived.chain.depth) == ("f", 3)
    assert arrived.chain.ancestors == ("agent:x", "a2a:f")
    assert arrived.labels == Labels.PRIVATE | Labels.UNTRUSTED_AGENT
    assert a.arrive({}, "key:else")[1].chain.depth == 1
    hop.end()
    assert a.arrive({}, "key:stranger")[1].chain.depth == 1


def test_a_trace_that_is_live_here_is_known_again_but_not_to_who_began_it() -> None:
    a, _ = pair()
    hop = a.leave("b")
    trace = {"traceparent": hop.words()["traceparent"]}
    assert a.arrive(trace, "key:somebody")[1].chain.depth == 2
    assert a.arrive(trace, "key:me")[1].chain.depth == 1


bounds = st.none() | st.integers(0, 100)
tolds = st.builds(
    Told,
    depth=st.integers(1, 12),
    ancestors=st.lists(st.sampled_from(["agent:x", "agent:y@b", "a2a:b@a"]), max_size=4).map(tuple),
    seconds=st.none() | st.floats(0, 10**5),
    calls=bounds,
    usd=bounds.map(lambda one: None if one is None else one / 4),
    labels=st.integers(0, 127).map(lambda bits: Labels.of(Labels(bits).names)),
)


def ways(told: Told) -> list[object]:
    """What somebody can make of it: an object, a list, a token of nobody's, of one for others."""
    words = {**words_of(told), "iss": "x", "aud": "y", "nonce": "z", "iat": 0, "exp": 1}
    return [
        words_of(told),
        ",".join(told.ancestors),
        sealed(ASKS, words, Ed25519PrivateKey.generate().sign),
        f"{ASKS}nonsense",
    ]


@given(tolds, st.integers(0, 3), st.integers(0, 1), st.sampled_from(["key:peer", "key:else"]))
def test_no_foreign_chain_ever_loosens_anything(
    told: Told,
    way: int,
    live: int,
    caller: str,
) -> None:
    a, b = pair()
    a.knows(b, comes_as="peer")
    if live:
        deep = replace(new_chain().deeper("agent:x"), deadline=a.clock.seconds + 50)
        a.leave("b", deep, Labels.PRIVATE)
    usual = a.arrive({}, caller)[1]
    found = a.arrive({CHAIN: ways(told)[way]}, caller)[1]
    assert found.chain.depth >= usual.chain.depth
    assert set(usual.chain.ancestors) <= set(found.chain.ancestors)
    assert found.labels & usual.labels == usual.labels
    assert usual.chain.deadline is not None
    assert found.chain.deadline is not None
    assert found.chain.deadline <= usual.chain.deadline
    before, after = (a.hops.chains.left(one.chain) for one in (usual, found))
    assert after[0] <= before[0]
    assert after[1] is not None
    assert before[1] is not None
    assert after[1] <= before[1]


def test_a_chain_without_a_signature_can_be_as_tight_as_it_likes() -> None:
    a, _ = pair()
    told = Told(depth=4, ancestors=("x",), seconds=2.0, calls=3, usd=0.5, labels=Labels.SECRET)
    arrived = a.hops.arrive(read_chain(told=told), Caller(id="key:peer"))
    assert (arrived.chain.depth, arrived.chain.ancestors) == (4, ("x",))
    assert arrived.chain.deadline == a.clock.seconds + 2
    assert a.hops.chains.left(arrived.chain) == (3, 0.5)
    assert arrived.labels == Labels.SECRET | Labels.UNTRUSTED_AGENT


def test_a_longer_list_of_who_waits_hides_nobody_of_a_shorter_one() -> None:
    a, b = pair()
    signed = read_told(a.leave("b", new_chain().deeper("agent:x")).words()[CHAIN])
    assert signed is not None
    longer = Told(depth=4, ancestors=("p", "q", "r"))
    for told in ([signed, longer], [longer, signed]):
        chain = new_chain()
        for one in told:
            chain = joined(chain, read_chain(told=one))
        arrived = b.hops.arrive(chain, Caller(id="key:peer"))
        assert set(arrived.chain.ancestors) == {"agent:x@a", "a2a:b@a", "p", "q", "r"}
        assert arrived.chain.depth == 6
    header, beside = (
        read_chain(told=Told(ancestors=names)) for names in (("agent:y",), ("p", "q"))
    )
    for one, other in ((header, beside), (beside, header)):
        assert set(joined(one, other).ancestors) == {"agent:y", "p", "q"}


@pytest.mark.parametrize("starry", [None, "star", "made-up"])
def test_a_peer_that_hands_on_one_name_of_a_trace_is_counted(starry: str | None) -> None:
    a = Node("a", Still())
    chain = replace(new_chain(), starry_id="star")
    a.leave("foreign", replace(chain.deeper("agent:x"), shared=True), Labels.PRIVATE)
    back = read_chain(traceparent=chain.traceparent, starry_id=starry)
    arrived = a.hops.arrive(back, Caller(id="key:somebody"))
    assert arrived.chain.depth == 3
    assert arrived.chain.ancestors == ("agent:x", "a2a:foreign")
    assert Labels.PRIVATE & arrived.labels
    assert len(a.hops.away) == 1
