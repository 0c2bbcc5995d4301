"""A home with agents for every way in which a task can go, and somebody who asks them."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from tests.faults.daemon import NO_LIMITS, SECONDS, Home, make_home
from tests.faults.dialects import RPC1, Sending

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from tests.faults.daemon import Answered, Daemon
    from tests.faults.dialects import Asked, Dialect

ENABLED = f"{NO_LIMITS}[a2a]\nenabled = true\nprimary_agent = 'echo'\n"
PUSHED = "[a2a.push]\nallow_private = true\n"
MANIFEST = """
name = "{name}"
description = "The agent {name}"
module = "python:agent.py"
[capabilities]
tools = ["*"]
shell = ["*"]
network = ["*"]
[policy]
project = "default"
spec = "{spec}"
[resources]
max_tool_calls_per_minute = 1_000_000
"""
PLAN = "agents run programs"
PROGRAMS = {
    "echo": """
async def run(message, context):
    context.stream("it is ")
    context.artifact("note.txt", "made of " + message)
    return "it is " + message
""",
    "asker": """
async def run(message, context):
    return "so: " + await context.ask("Which one?")
""",
    "reader": """
async def run(message, context):
    await context.call("shell_exec", {"command": ["cat", message]})
    return "read it"
""",
    "caller": """
async def run(message, context):
    await context.call(message)
    return "called it"
""",
}
PLANNER = """
name = "planner"
description = "Tells the time."
[model]
provider = "default"
[capabilities]
tools = ["system_time", "memory_store", "memory_recall"]
memory_read = ["*"]
memory_write = ["*"]
[policy]
project = "default"
[resources]
max_tool_calls_per_minute = 1_000_000
"""


def home_with_agents(folder: Path, config: str = ENABLED) -> Home:
    """Make a home whose agents are served to peers."""
    home = make_home(folder, config)
    for name, program in PROGRAMS.items():
        _write(home, name, MANIFEST.format(name=name, spec=sha256(PLAN.encode()).hexdigest()))
        (home.path / "agents" / name / "agent.py").write_text(program)
    _write(home, "planner", PLANNER)
    return home


def _write(home: Home, name: str, manifest: str) -> None:
    folder = home.path / "agents" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.toml").write_text(manifest)


@dataclass(frozen=True, slots=True)
class Peer:
    """Somebody with a key who asks."""

    daemon: Daemon
    key: str = ""

    def headers(self, asked: Asked) -> dict[str, str]:
        more = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return self.daemon.headers({**asked.headers, **more})

    def ask(self, asked: Asked) -> Answered:
        return self.daemon.ask(asked.method, asked.path, asked.body, self.headers(asked))

    def send(self, sending: Sending, dialect: Dialect = RPC1) -> dict[str, Any]:
        return dialect.task(self.ask(dialect.send(sending)))

    def of_task(
        self, operation: str, task: str, agent: str = "echo", dialect: Dialect = RPC1
    ) -> Answered:
        return self.ask(dialect.of_task[operation](agent, task))

    @contextmanager
    def events(self, asked: Asked) -> Generator[Iterator[dict[str, Any]]]:
        """What a stream tells, as long as it lasts."""
        with closing(self.daemon.connect()) as connection:
            body = None if asked.body is None else json.dumps(asked.body)
            connection.request(asked.method, asked.path, body, self.headers(asked))
            response = connection.getresponse()
            kind = response.getheader("content-type", "")
            assert kind.startswith("text/event-stream"), (response.status, response.read())
            # Of a node that was killed the last line may be a part of one.
            lines = (line for line in response if line.endswith(b"\n"))
            yield (json.loads(line[6:]) for line in lines if line.startswith(b"data: "))


@contextmanager
def reading(peer: Peer, name: str) -> Generator[tuple[str, int]]:
    """A task whose agent runs a program: its id, and a handle to write what the program reads."""
    pipe = pipe_for_reader(peer.daemon.home, name)
    freeze_plan(peer.daemon)
    task = peer.send(Sending(agent="reader", text=name, waits=False))["id"]
    writing = opened(pipe)
    try:
        yield task, writing
    finally:
        os.close(writing)


def pipe_for_reader(home: Home, name: str) -> Path:
    """Make what the program of the agent `reader` reads from, if the message is this name."""
    pipe = home.path / "workspaces" / "agent-reader" / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    return pipe


def opened(pipe: Path) -> int:
    """Open it as soon as somebody reads: who waits for that in the kernel may wait for ever."""
    ends = time.monotonic() + SECONDS
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > ends:
                raise
            time.sleep(0.01)


def another(daemon: Daemon, name: str) -> Peer:
    """Somebody else, with a key of their own."""
    made = daemon.ask("POST", "/api/keys", {"name": name, "role": "user"})
    assert made.status == 201, made
    return Peer(daemon, made.json["secret"])


def freeze_plan(daemon: Daemon) -> None:
    """Let the agents run programs."""
    made = daemon.ask("POST", "/api/specs", {"name": "plan", "content": PLAN})
    assert made.json["hash"] == sha256(PLAN.encode()).hexdigest(), made
