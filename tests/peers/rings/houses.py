"""Three nodes that believe each other, and an agent that calls whom it is told to call."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.faults.daemon import NO_LIMITS, SECONDS, make_home, serving
from tests.peers.a2a.front import front
from tests.peers.rings.foreign import foreign

from openfang.app.nodes.book import fingerprint
from openfang.core.ids import random_hex
from openfang.host.secrets import MasterKey
from openfang.protocols.hops.token import LIFE_MS, sealed
from openfang.protocols.hops.words import ASKS

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from tests.faults.daemon import Daemon, Home
    from tests.peers.a2a.front import Front
    from tests.peers.rings.foreign import Foreign

NAMES: Final = ("a", "b", "c")
AGENT: Final = "assistant"
AGENT_TOOL: Final = f"openfang_agent_{AGENT}"
CONFIG: Final = (
    f'{NO_LIMITS}\n[a2a]\nenabled = true\nprimary_agent = "{AGENT}"\n'
    "[guard]\nbreaker_secs = 0.0001\n"
)
NODE: Final = """
[[nodes]]
name = "{name}"
url = "{url}"
public_key = "{key}"
allow_private = true

[[mcp_servers]]
name = "{name}"
allow_private = true
trust = "high"
risk = "LOW"
[mcp_servers.transport]
type = "http"
url = "{url}/mcp"
headers = {{ Authorization = "Bearer {secret}" }}
"""
PEER: Final = """
[[a2a.external_agents]]
name = "{name}"
url = "{url}"
auth = "{secret}"
allow_private = true
trust = "high"
"""
COMES_AS: Final = 'comes_as = "{name}"\n'
MANIFEST: Final = f"""
name = "{AGENT}"
module = "python:agent.py"
[capabilities]
tools = ["a2a:*", "mcp:*"]
[policy]
project = "default"
"""
# Each word before the last names who is asked to go on with the rest.
PROGRAM: Final = f"""
async def run(message, context):
    first, _, rest = message.partition(" ")
    if not rest:
        return "I say " + first
    tool = first + ":{AGENT_TOOL}" if first.startswith("mcp:") else first
    try:
        return first + " > " + (await context.call(tool, {{"message": rest}})).text
    except context.Refused as refused:
        return first + " refused " + refused.code + ": " + str(refused)
"""


@dataclass(slots=True)
class House:
    """One of the nodes."""

    name: str
    home: Home
    front: Front
    daemon: Daemon | None = None

    @property
    def key(self) -> Ed25519PrivateKey:
        return MasterKey.open(self.home.path, keyring=False).signing_key()

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    @property
    def node(self) -> Daemon:
        assert self.daemon
        return self.daemon

    def tell(self, message: str, session: str = "") -> str:
        """Talk to its agent, each time anew: what came from abroad taints a conversation."""
        said: dict[str, Any] = {"message": message, "session": session or random_hex(6)}
        answer = self.node.ask("POST", f"/api/agents/{AGENT}/message", said)
        assert answer.status == 200, answer.body
        return answer.json["response"]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Read what its log has of one kind: payload and context."""
        rows = self.home.rows(
            "SELECT payload, context FROM audit WHERE event = ? ORDER BY seq", (kind,)
        )
        return [{**json.loads(payload), "context": json.loads(why)} for payload, why in rows]


@dataclass(slots=True)
class Town:
    """All of them, and one who is nobody's."""

    houses: dict[str, House]
    foreign: Foreign
    keys: dict[str, str] = field(default_factory=dict[str, str])

    def __getitem__(self, name: str) -> House:
        return self.houses[name]

    def token(
        self, issuer: str, audience: str, *, by: Ed25519PrivateKey | None = None, **claims: Any
    ) -> str:
        """Sign a chain as a node would, or as somebody else who says to be that node."""
        now = time.time_ns() // 1_000_000
        said: dict[str, Any] = {
            "depth": 1,
            "ancestors": [],
            "iat": now,
            "exp": now + LIFE_MS,
            "iss": fingerprint(self[issuer].public),
            "aud": fingerprint(self[audience].public),
            "nonce": random_hex(16),
            "trace": random_hex(16),
            "starry": None,
            **claims,
        }
        return sealed(ASKS, said, (by or self[issuer].key).sign)


def _write(home: Home, text: str) -> None:
    with (home.path / "config.toml").open("a") as config:
        config.write(text)


def _furnished(folder: Path) -> Home:
    home = make_home(folder, CONFIG)
    agent = home.path / "agents" / AGENT
    agent.mkdir(parents=True, exist_ok=True)
    (agent / "agent.toml").write_text(MANIFEST)
    (agent / "agent.py").write_text(PROGRAM)
    return home


def _introduce(one: House, other: House) -> None:
    written = urlsafe_b64encode(other.public).decode().rstrip("=")
    url, secret = other.front.url, other.home.key
    _write(one.home, NODE.format(name=other.name, url=url, key=written, secret=secret))
    card = other.front.card("1.0-JSONRPC")
    _write(one.home, PEER.format(name=other.name, url=card, secret=secret))


def _met(house: House, tools: list[str]) -> None:
    """Wait until it knows the others: nobody announces that."""
    ends = time.monotonic() + SECONDS
    for tool in tools:
        while house.node.ask("GET", f"/api/tools/{tool}").status != 200:
            assert time.monotonic() < ends, tool
            time.sleep(0.05)


@contextmanager
def town(folder: Path) -> Generator[Town]:
    """Have them all serve."""
    with ExitStack() as stack:
        houses = {
            name: House(name, _furnished(folder / name), stack.enter_context(front()))
            for name in NAMES
        }
        stranger = stack.enter_context(foreign())
        for one in houses.values():
            for other in houses.values():
                if other is not one:
                    _introduce(one, other)
            _write(one.home, PEER.format(name="f", url=stranger.url, secret="x" * 20))
            _write(one.home, COMES_AS.format(name="stranger"))
        found = Town(houses, stranger)
        for one in houses.values():
            one.daemon = stack.enter_context(serving(one.home))
            one.front.node = one.daemon.address
            made = one.node.ask("POST", "/api/keys", {"name": "stranger", "tools": ["agent:*"]})
            assert made.status == 201, made.body
            found.keys[one.name] = made.json["secret"]
        for one in houses.values():
            others = [name for name in NAMES if name != one.name]
            servers = [f"mcp:{name}:{AGENT_TOOL}" for name in others]
            _met(one, [*(f"a2a:{name}" for name in (*others, "f")), *servers])
        yield found
