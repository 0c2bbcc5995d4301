"""Two of our own nodes whose agents have the same name: they ask each other, and not in circles."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.cluster.housed import startable
from tests.faults.daemon import NO_LIMITS, make_home
from tests.peers.a2a.front import front
from tests.peers.a2a.house import met

from openfang.host.secrets import MasterKey

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.faults.daemon import Daemon, Home
    from tests.peers.a2a.front import Front

pytestmark = pytest.mark.requirement("C8.2", "C5.8")

CONFIG = f'{NO_LIMITS}\n[a2a]\nenabled = true\nprimary_agent = "assistant"\n'
PEER = """
[[nodes]]
name = "other"
url = "{node}"
public_key = "{public}"
allow_private = true
[[a2a.external_agents]]
name = "other"
url = "{url}"
auth = "{auth}"
allow_private = true
trust = "high"
"""
MANIFEST = """
name = "assistant"
module = "python:agent.py"
[capabilities]
tools = ["a2a:other"]
[policy]
project = "default"
"""
# Each word before the last is a node further on.
PROGRAM = """
async def run(message, context):
    first, _, rest = message.partition(" ")
    if not rest:
        return "I say " + first
    try:
        return first + ": " + (await context.call("a2a:other", {"message": rest})).text
    except context.Refused as refused:
        return "refused: " + refused.code
"""
DIALECTS = ("seed", "1.0-JSONRPC")


def home(folder: Path) -> Home:
    made = make_home(folder, CONFIG)
    agent = made.path / "agents" / "assistant"
    agent.mkdir(parents=True, exist_ok=True)  # it is what a new home has
    (agent / "agent.toml").write_text(MANIFEST)
    (agent / "agent.py").write_text(PROGRAM)
    return made


def introduced(one: Home, other: Home, front: Front, dialect: str) -> None:
    """Let a node know another as one of ours: what nobody signs would make a person be asked."""
    key = MasterKey.open(other.path, keyring=False).signing_key().public_key().public_bytes_raw()
    public = urlsafe_b64encode(key).decode().rstrip("=")
    peer = PEER.format(url=front.card(dialect), auth=other.key, node=front.url, public=public)
    with (one.path / "config.toml").open("a") as config:
        config.write(peer)


@pytest.fixture(params=DIALECTS)
def asks(request: pytest.FixtureRequest, tmp_path: Path, nodes_server: str) -> Generator[Daemon]:
    """One of two nodes that know each other."""
    with ExitStack() as stack:
        fronts = [stack.enter_context(front()) for _ in range(2)]
        homes = [home(tmp_path / name) for name in ("one", "two")]
        introduced(homes[0], homes[1], fronts[1], request.param)
        introduced(homes[1], homes[0], fronts[0], request.param)
        starts = [stack.enter_context(startable(one, nodes_server)) for one in homes]
        houses = [start() for start in starts]
        for one, before in zip(houses, fronts, strict=True):
            before.node = one.daemon.address
        for daemon in (daemon for one in houses for daemon in one.daemons):
            met(daemon, "a2a:other")
        yield houses[0].daemon


def told(daemon: Daemon, message: str) -> str:
    """Talk to the agent, each time anew: what came from abroad taints a conversation."""
    said = {"message": message, "session": message}
    answer = daemon.ask("POST", "/api/agents/assistant/message", said)
    assert answer.status == 200, answer.body
    return answer.json["response"]


def test_an_agent_asks_its_namesake_and_a_way_back_is_refused(asks: Daemon) -> None:
    assert told(asks, "hello") == "I say hello"
    assert told(asks, "there hello") == "there: I say hello"
    again = told(asks, "there back hello")
    assert again.startswith("there: back: "), again
    assert "agent:assistant is already waiting further up in this chain" in again
    assert "I say hello" not in again
