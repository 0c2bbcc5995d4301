"""What a chain costs where it crosses a hop: told, signed, checked; and a ring until it is cut."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from bench.figures import Figure, cpu_per
from openfang.app.clock import SystemClock
from openfang.app.nodes.hops import NodeHops
from openfang.config.merge import frozen
from openfang.config.models import Config
from openfang.core.calls import Admitted, Call, Caller
from openfang.core.ids import Kind
from openfang.core.tools import Tool
from openfang.core.trace import new_chain, read_chain
from openfang.guard.recursion import Chains
from openfang.protocols.hops.words import CHAIN, read_told

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROUNDS = 2_000
TOOL = Tool(id="a2a:b", kind=Kind.A2A, source="b", name="b")
PEER = Caller(id="key:peer")


def _key() -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - as it is used
        Ed25519PrivateKey,
    )

    return Ed25519PrivateKey.generate()


def _node(name: str, key: Ed25519PrivateKey, other: Ed25519PrivateKey | None) -> NodeHops:
    hops = NodeHops(node=name, clock=SystemClock(), chains=Chains(), signing=lambda: key)
    if other is not None:
        public = urlsafe_b64encode(other.public_key().public_bytes_raw()).decode()
        node = {"name": "b", "url": "https://b.example", "public_key": public}
        peer = {"name": "b", "url": "https://b.example/card"}
        config = {"nodes": [node], "a2a": {"external_agents": [peer]}}
        hops.configure(Config.model_validate(frozen(config)))
    return hops


def _leaves(hops: NodeHops) -> dict[str, Any]:
    call = Call(tool=TOOL.id, caller=PEER, chain=new_chain().deeper("agent:x"))
    hop = hops.depart(Admitted(call=call, tool=TOOL, stamp=b"", timeout=1.0))
    words = hop.words()
    hop.end()
    return words


def _arrives(hops: NodeHops, words: dict[str, Any]) -> object:
    chain = read_chain(traceparent=words["traceparent"], told=read_told(words[CHAIN]))
    return hops.arrive(chain, PEER)


def _verified(hops: NodeHops, sender: NodeHops) -> float:
    """Microseconds for each signed chain; each is good for one look, so many are made first."""
    rounds: list[float] = []
    for _ in range(3):
        made = [_leaves(sender) for _ in range(ROUNDS)]
        before = time.process_time()
        for words in made:
            _arrives(hops, words)
        rounds.append((time.process_time() - before) / ROUNDS * 1e6)
    return min(rounds)


async def figures(folder: Path) -> list[Figure]:
    """Measure it, alone and between two nodes."""
    del folder
    one, other = _key(), _key()
    alone, sender, receiver = _node("a", one, None), _node("a", one, other), _node("b", other, one)
    told = _leaves(alone)
    return [
        Figure("a call leaves for who is no node", cpu_per(ROUNDS, lambda: _leaves(alone)), "us", 60),
        Figure(
            "a call arrives that says where from", cpu_per(ROUNDS, lambda: _arrives(alone, told)), "us", 60
        ),
        Figure("a call leaves for a node, signed", cpu_per(ROUNDS, lambda: _leaves(sender)), "us", 250),
        Figure("a call arrives from a node, checked", _verified(receiver, sender), "us", 400),
    ]
