"""A daemon with an agent that does as it is told, and two callers."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.faults.daemon import NO_LIMITS, SECONDS, Daemon, Home, make_home

from openfang.core.ids import new_id

AGENTS: Final = Path(__file__).with_name("agents")
PEERS: Final = Path(sys.prefix) / "peers"
AGENT: Final = "worker"
CONFIG: Final = f"""\
{NO_LIMITS}
[a2a]
enabled = true
primary_agent = "{AGENT}"
push = {{ allow_private = true }}
"""


@dataclass(frozen=True, slots=True)
class House:
    """A node that serves, its administrator's key and that of somebody who may only talk."""

    daemon: Daemon
    other: str

    @property
    def key(self) -> str:
        return self.daemon.key

    @property
    def url(self) -> str:
        host, port = self.daemon.address
        return f"http://{host}:{port}"

    def agent(self, name: str = AGENT) -> str:
        """The address under which an agent's card stands."""
        return f"{self.url}/a2a/agents/{name}/"

    def tell(self, text: str, agent: str = AGENT) -> str:
        """Talk to the agent behind the back of whoever is being tested."""
        answer = self.daemon.ask("POST", f"/api/agents/{agent}/message", {"message": text})
        assert answer.status == 200, answer.body
        return answer.json["response"]

    def complaints(self) -> list[str]:
        """What the log says of the node's own mistakes: those of the agent are on purpose."""
        found = self.daemon.home.complaints()
        return [line for line in found if '"logger":"openfang.agents"' not in line]

    def begun(self, name: str) -> None:
        """Wait until the agent holds."""
        assert self.tell(f"begun {name}") == f"Begun {name}."

    def stopped(self, name: str) -> None:
        """Wait until the agent was told to hold no longer."""
        assert self.tell(f"stopped {name}") == f"Stopped {name}."

    def release(self, name: str) -> None:
        """Let a task go on that was told to hold."""
        assert self.tell(f"release {name}") == f"Released {name}."

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """Each process that serves it."""
        return (self.daemon,)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.daemon.tell(signal.SIGKILL)
        assert self.daemon.ended() == -signal.SIGKILL


def furnished(folder: Path, config: str = CONFIG) -> Home:
    """Make a home with the agents of these tests in it."""
    home = make_home(folder, config)
    for agent in AGENTS.iterdir():
        shutil.copytree(agent, home.path / "agents" / agent.name)
    return home


def key(daemon: Daemon, **fields: Any) -> str:
    """Make a key, and give its secret."""
    made = daemon.ask("POST", "/api/keys", {"name": new_id("key"), **fields})
    assert made.status == 201, made.body
    return made.json["secret"]


def met(daemon: Daemon, tool: str) -> None:
    """Wait until it knows another as this tool: nobody announces that."""
    ends = time.monotonic() + SECONDS
    while daemon.ask("GET", f"/api/tools/{tool}").status != 200:
        assert time.monotonic() < ends, tool
        time.sleep(0.05)
