"""What a chain costs where it crosses a hop: told, signed, checked; and a ring until it is cut."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bench.daemon import daemon
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
from openfang.host.secrets import MasterKey
from openfang.protocols.hops.words import CHAIN, read_told

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from bench.daemon import Target

ROUNDS = 2_000
RINGS = 20
_OK = 200
_PATIENCE = 20
MOST_MS = 1_000
_MANIFEST = """
name = "assistant"
module = "python:agent.py"
[capabilities]
tools = ["a2a:*"]
[policy]
project = "default"
"""
_PROGRAM = """
async def run(message, context):
    return (await context.call("a2a:me", {"message": message})).text
"""
_CONFIG = "[guard]\nbreaker_secs = 0.01\n[a2a]\nenabled = true\n"
_RING = """
[[nodes]]
name = "me"
url = "{url}"
public_key = "{key}"
allow_private = true

[[a2a.external_agents]]
name = "me"
url = "{url}/.well-known/agent-card.json"
auth = "{secret}"
allow_private = true
trust = "high"
"""
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


def _ask(target: Target, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {target.key}", "Content-Type": "application/json"}
    with closing(HTTPConnection("127.0.0.1", target.port, timeout=60)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def _closed(target: Target, home: Path) -> None:
    """Let a node call itself by its own address, and wait until it can."""
    key = MasterKey.open(home, keyring=False).signing_key().public_key().public_bytes_raw()
    url, written = f"http://127.0.0.1:{target.port}", urlsafe_b64encode(key).decode()
    with (home / "config.toml").open("a") as config:
        config.write(_RING.format(url=url, key=written, secret=target.key))
    _ask(target, "POST", "/api/config/reload")
    ends = time.monotonic() + _PATIENCE
    while _ask(target, "GET", "/api/tools/a2a:me")[0] != _OK:
        if time.monotonic() > ends:
            raise TimeoutError("the node does not know itself")
        time.sleep(0.1)


def _ring(folder: Path) -> float:
    """Milliseconds until an agent that calls itself over HTTP has its answer: the slowest."""
    home = folder / "ring"
    agent = home / "agents" / "assistant"
    agent.mkdir(parents=True)
    (agent / "agent.toml").write_text(_MANIFEST)
    (agent / "agent.py").write_text(_PROGRAM)
    took: list[float] = []
    with daemon(home, _CONFIG, made=True) as (target, _):
        _closed(target, home)
        for number in range(RINGS + 1):
            said = {"message": "hello", "session": f"s{number}"}
            before = time.monotonic()
            answer = _ask(target, "POST", "/api/agents/assistant/message", said)
            took.append((time.monotonic() - before) * 1000)
            if b"already waiting" not in answer[1]:
                raise RuntimeError(answer[1].decode())
    return max(took[1:])  # the first one starts the agent's own process


async def figures(folder: Path) -> list[Figure]:
    """Measure it, alone and between two nodes."""
    ring = await to_thread.run_sync(_ring, folder)
    one, other = _key(), _key()
    alone, sender, receiver = _node("a", one, None), _node("a", one, other), _node("b", other, one)
    told = _leaves(alone)
    return [
        Figure(
            "a call leaves for who is no node", cpu_per(ROUNDS, lambda: _leaves(alone)), "us", 60
        ),
        Figure(
            "a call arrives that says where from",
            cpu_per(ROUNDS, lambda: _arrives(alone, told)),
            "us",
            60,
        ),
        Figure(
            "a call leaves for a node, signed", cpu_per(ROUNDS, lambda: _leaves(sender)), "us", 250
        ),
        Figure("a call arrives from a node, checked", _verified(receiver, sender), "us", 400),
        Figure("a ring over HTTP is cut, the slowest of 20", ring, "ms", MOST_MS),
    ]
