"""The node that the storm goes over: servers, an agent, and a daemon that can be begun anew."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.daemon import NO_LIMITS, SECONDS, Daemon, Home, make_home, serving
from tests.faults.tasks import MANIFEST, PLAN

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

UPSTREAM = Path(__file__).with_name("upstream.py")
WEB_UPSTREAM = Path(__file__).with_name("web_upstream.py")
BY_STDIO = tuple(f"s{number:02}" for number in range(1, 19))
BY_HTTP = ("w01", "w02")
SERVERS = (*BY_STDIO, *BY_HTTP)
TIMEOUT = 4
TOOL = "get_echo"
COURIER = """
async def run(message, context):
    tool, _, text = message.partition(" ")
    found = await context.call(tool, {"text": text})
    return found.text
"""
# What repeats itself is not what this is about, and nobody is asked to wait for a breaker.
CONFIG = f"""
{NO_LIMITS}
[a2a]
enabled = true
primary_agent = "courier"
max_tasks = 1_000_000
[guard]
tool_calls = 100_000_000
breaker_secs = 0.5
[loops]
block = 1_000_000
outcome_block = 1_000_000
no_progress = 1_000_000
[server]
head_secs = 2
body_secs = 3
[toolsets.all]
servers = {json.dumps(SERVERS)}
"""


def tool_of(server: str) -> str:
    return f"mcp:{server}:{TOOL}"


def stdio_entry(name: str) -> str:
    args = json.dumps(["-I", "-S", str(UPSTREAM), name])
    return (
        f'[[mcp_servers]]\nname = "{name}"\ntrust = "high"\nrisk = "LOW"\n'
        f"timeout_secs = {TIMEOUT}\n"
        f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}\n'
    )


def http_entry(name: str, port: int) -> str:
    return (
        f'[[mcp_servers]]\nname = "{name}"\ntrust = "high"\nrisk = "LOW"\nallow_private = true\n'
        f"timeout_secs = {TIMEOUT}\n"
        f'transport = {{ type = "http", url = "http://127.0.0.1:{port}/mcp" }}\n'
    )


def until(
    seen: Callable[[], object], seconds: float = SECONDS, what: Callable[[], object] = str
) -> None:
    """Look until it is so: from outside nothing is announced. `what` tells what was instead."""
    ends = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < ends, what()
        time.sleep(0.02)


@dataclass(slots=True)
class WebServer:
    """A server over HTTP, at the same port whenever it is there."""

    name: str
    process: subprocess.Popen[bytes] = field(init=False)
    port: int = 0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-S", str(WEB_UPSTREAM), self.name, str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        assert self.process.stdout
        self.process.stdout.close()


@dataclass(slots=True)
class Node:
    """A home with everything in it, and whoever serves it now. `lives` counts the daemons."""

    home: Home
    webs: dict[str, WebServer]
    lives: int = 0
    _daemon: Daemon | None = None
    _serving: ExitStack = field(default_factory=ExitStack)

    @property
    def daemon(self) -> Daemon:
        assert self._daemon
        return self._daemon

    @property
    def config(self) -> str:
        """Everything that `config.toml` says while nobody changes it."""
        stdio = [stdio_entry(name) for name in BY_STDIO]
        http = [http_entry(web.name, web.port) for web in self.webs.values()]
        return "\n".join([CONFIG, *stdio, *http])

    def write(self, config: str) -> None:
        (self.home.path / "config.toml").write_text(config)

    def start(self) -> None:
        self._daemon = self._serving.enter_context(serving(self.home))
        self.lives += 1

    def end(self, number: signal.Signals) -> int:
        """Tell the daemon to end, and say with which code it did."""
        self.daemon.tell(number)
        code = self.daemon.ended()
        self._serving.close()
        return code

    def health(self) -> dict[str, str]:
        return self.daemon.ask("GET", "/api/mcp/health").json

    def wait_until_healthy(self) -> None:
        until(lambda: not self.unhealthy(), what=self.unhealthy)

    def unhealthy(self) -> dict[str, str]:
        return {name: word for name, word in self.health().items() if word != "healthy"}

    def works(self, server: str) -> bool:
        """Whether a call gets through to a server."""
        answer = self.daemon.call(tool_of(server), text="there?")
        return answer.status == 200 and answer.json["outcome"] == "ok"

    def close(self) -> None:
        self._serving.close()
        for web in self.webs.values():
            web.kill()


def make_node(folder: Path) -> Node:
    """Make everything; nothing is served yet."""
    home = make_home(folder / "home")
    node = Node(home, {name: WebServer(name) for name in BY_HTTP})
    node.write(node.config)
    agent = home.path / "agents" / "courier"
    agent.mkdir(parents=True)
    manifest = MANIFEST.format(name="courier", spec=sha256(PLAN.encode()).hexdigest())
    (agent / "agent.toml").write_text(manifest)
    (agent / "agent.py").write_text(COURIER)
    return node
