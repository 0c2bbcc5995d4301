"""A storm over three nodes and their database, one fault after the other, under load.

Each fault is done, felt for a while, and undone; afterwards everything that was acknowledged must
be there, every chain verify, every effect have happened once at most, and nobody wait any more.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster.balancer import balancing
from tests.cluster.house import Cluster, homes
from tests.cluster.load import Load
from tests.cluster.server import own_server
from tests.cluster.wires import Wire
from tests.postgres import run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.cli.conftest import Cli
    from tests.cluster.load import Told
    from tests.cluster.server import Server

_UPSTREAM = Path(__file__).parents[1] / "sources" / "mcp" / "peers" / "echo.py"
_COURIER = """
async def run(message, context):
    found = await context.call("mcp:effects:add_line", {"text": message})
    return found.text
"""
_MANIFEST = """
name = "courier"
description = "Adds a line."
module = "python:agent.py"
[capabilities]
tools = ["*"]
[policy]
project = "default"
[resources]
max_tool_calls_per_minute = 1_000_000
"""
_CONFIG = """
[guard]
tool_calls = 100_000_000
[loops]
block = 1_000_000
outcome_block = 1_000_000
no_progress = 1_000_000
[[mcp_servers]]
name = "effects"
trust = "high"
risk = "LOW"
sandbox = "off"
transport = {{ type = "stdio", command = {python}, args = {args} }}
"""
_FELT = 15
_TAKEN_OVER = 30.0
_ENDINGS = """
    SELECT started.call_id, COUNT(ended.call_id) FROM audit AS started LEFT JOIN audit AS ended
    ON ended.call_id = started.call_id AND ended.event = 'tool_invocation_end'
    WHERE started.event = 'tool_invocation_start' GROUP BY started.call_id
    HAVING COUNT(ended.call_id) <> 1
"""
_ON_RECORD = """
    SELECT started.payload::json->'arguments'->>'text' FROM audit AS started JOIN audit AS ended
    ON ended.call_id = started.call_id AND ended.event = 'tool_invocation_end'
    WHERE started.event = 'tool_invocation_start' AND ended.payload::json->>'outcome' = 'ok'
"""
_TASKS = "SELECT id, final FROM tasks"


@dataclass(slots=True, kw_only=True)
class Storm:
    """What it goes over. `wrong` is what must not be."""

    cluster: Cluster
    server: Server
    wires: dict[str, Wire]
    effects: Path
    say: Callable[[str], None]
    wrong: list[str] = field(default_factory=list[str])

    def run(self, faults: str) -> Told:
        """Do what these letters stand for, and look what is left."""
        with Load(self.cluster) as load:
            load.until_answered(_FELT)
            for letter in faults:
                fault = FAULTS[letter]
                began = time.monotonic()
                fault(self, load)
                load.until_answered(_FELT)
                name = (fault.__doc__ or "").rstrip(".")
                self.say(f"{name}: {time.monotonic() - began:.1f} s, {load.told.well} answered")
        self._settle(load.told)
        return load.told

    def mistakes(self) -> list[str]:
        """What the nodes say of mistakes of their own: each kind of line once."""
        lines = (line for node in self.cluster.nodes for line in node.log.read_text().splitlines())
        own = (line for line in lines if '"exception"' in line or not line.startswith("{"))
        return sorted({re.sub(r"\w*\d\w*", "#", line)[:600] for line in own})

    def killed(self, load: Load) -> None:
        """A node is killed under load, and comes back."""
        name = self.cluster.nodes[1].name
        self.cluster.kill(name)
        load.until_answered(_FELT)
        self.cluster.start(name)

    def stopped(self, load: Load) -> None:
        """A node stands still for twelve seconds, and goes on."""
        process = self.cluster.nodes[2].process
        assert process
        os.kill(process.pid, signal.SIGSTOP)
        self._pause(12)
        os.kill(process.pid, signal.SIGCONT)
        load.until_answered(_FELT)

    def cut(self, load: Load) -> None:
        """A node is cut off from the database for twelve seconds."""
        wire = self.wires[self.cluster.nodes[0].name]
        wire.cut()
        self._pause(12)
        wire.mend()
        load.until_answered(_FELT)

    def slow(self, load: Load) -> None:
        """A node's database is slow for a while."""
        wire = self.wires[self.cluster.nodes[0].name]
        wire.lag = 0.2
        self._pause(4)
        wire.lag = 0.0
        load.until_answered(_FELT)

    def database(self, load: Load) -> None:
        """Postgres is killed, and started again."""
        self.server.kill()
        self._pause(1)
        self.server.start()
        load.until_answered(_FELT)

    def rolled(self, load: Load) -> None:
        """Each node in turn is stopped as it should be, and started anew."""
        for node in self.cluster.nodes:
            assert node.process
            node.process.send_signal(signal.SIGTERM)
            node.process.wait(60)
            node.end()
            self.cluster.start(node.name)
            load.until_answered(_FELT // 3)

    def _pause(self, seconds: float) -> None:
        """Let a fault last; nothing tells how long one is felt."""
        time.sleep(seconds)

    def _settle(self, told: Told) -> None:
        """Wait until everything has its end, then look at what is there."""
        ends = time.monotonic() + _TAKEN_OVER
        while time.monotonic() < ends and (self._rows(_ENDINGS) or self._open_tasks()):
            time.sleep(0.2)
        self._check("calls have no ending, or several", self._rows(_ENDINGS))
        recorded = {row[0] for row in self._rows(_ON_RECORD)}
        self._check("acknowledged calls are not on record", sorted(told.calls - recorded))
        kept = {row[0] for row in self._rows(_TASKS)}
        self._check("acknowledged tasks are lost", sorted(set(told.tasks) - kept))
        self._check("tasks have no end", self._open_tasks())
        done = Counter(self.effects.read_text().split())
        self._check("effects happened twice", [one for one, times in done.items() if times > 1])
        self._check("acknowledged effects are not there", sorted(told.calls - set(done)))
        verified = self.cluster.nodes[0].cli("audit", "verify", "--json")
        if verified.code or not verified.json["intact"]:
            self.wrong.append(f"the log is not intact: {verified.out}{verified.err}")

    def _open_tasks(self) -> list[Any]:
        return [row[0] for row in self._rows(_TASKS) if not row[1]]

    def _rows(self, query: str) -> list[Any]:
        return asyncio.run(run(self.server.url, query))[0]

    def _check(self, what: str, found: list[Any]) -> None:
        if found:
            self.wrong.append(f"{len(found)} {what}: {', '.join(map(str, found[:5]))}")


FAULTS: dict[str, Callable[[Storm, Load], None]] = {
    "k": Storm.killed,
    "s": Storm.stopped,
    "c": Storm.cut,
    "l": Storm.slow,
    "d": Storm.database,
    "r": Storm.rolled,
}


@contextmanager
def brewing(
    make_home: Callable[[], Cli], folder: Path, say: Callable[[str], None]
) -> Generator[Storm]:
    """Three nodes, each with a wire of its own to a server of the storm's own."""
    effects = folder / "effects"
    effects.touch()
    args = json.dumps(["-I", "-S", str(_UPSTREAM), "tools=add_line", f"adds={effects}"])
    config = _CONFIG.format(python=json.dumps(sys.executable), args=args)
    with ExitStack() as held:
        server = held.enter_context(own_server())
        wires = {name: held.enter_context(Wire(server.socket).running()) for name in "abc"}
        reached = {name: server.through(wire.port) for name, wire in wires.items()}
        nodes = homes(make_home, server.url, "abc", config, reached)
        for node in nodes:
            _write_courier(node.cli.home)
            held.callback(node.end)
            node.start()
        balancer = held.enter_context(balancing([node.address for node in nodes]))
        cluster = Cluster(nodes, server.url, balancer)
        yield Storm(cluster=cluster, server=server, wires=wires, effects=effects, say=say)


def _write_courier(home: Path) -> None:
    folder = home / "agents" / "courier"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.toml").write_text(_MANIFEST)
    (folder / "agent.py").write_text(_COURIER)
