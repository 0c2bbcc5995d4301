"""Several nodes on one Postgres database, each a real daemon with a home of its own."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import httpx
from tests.cli.conftest import Cli
from tests.cli.test_daemon import here
from tests.cluster.balancer import balancing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from tests.cluster.balancer import Balancer
    from tests.forked import Piped

_CONFIG = """
[a2a]
enabled = true
max_tasks = 1_000_000
[limits]
cells_per_minute = 1_000_000
burst = 1_000_000
[storage]
url = {url}
[cluster]
node = {node}
"""
_AHEAD = """
import sys, time
right = time.time_ns
time.time_ns = lambda: right() + {ns}
time.time = lambda: time.time_ns() / 1e9
sys.argv = ["openfang", "start", "--listen", "127.0.0.1:0"]
from openfang.__main__ import main
main()
"""
_SHARED = ("master.key", "key", "agents", "config.toml")


@dataclass(slots=True)
class Node:
    """One of them. It may be started and ended as often as a test wants."""

    name: str
    cli: Cli
    address: str = ""
    process: Piped | Popen[bytes] | None = None
    _held: ExitStack = field(default_factory=ExitStack)

    def start(self, ahead: float = 0.0) -> None:
        """Have it serve; `ahead` is by how many seconds its clock is wrong."""
        daemon = self._held.enter_context(off(self.cli, ahead) if ahead else here(self.cli))
        self.process, self.address = daemon.process, daemon.url
        if self.process.stderr is not None:  # else it would write until nobody takes more
            Thread(target=self._keep, args=(self.process.stderr,), daemon=True).start()

    @property
    def log(self) -> Path:
        """What it has said, over all its starts."""
        return self.cli.home.parent / "log"

    def _keep(self, said: IO[bytes]) -> None:
        with (
            self.log.open("ab", buffering=0) as log,
            suppress(ValueError),
        ):  # it was closed under us
            for line in said:
                log.write(line)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)
        self._held.close()
        self.process = None

    def end(self) -> None:
        """End whatever is left of it."""
        self._held.close()

    @property
    def client(self) -> httpx.Client:
        """Ask it, with the administrator's key."""
        return httpx.Client(base_url=self.address, headers=self.headers, timeout=150)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {(self.cli.home / 'key').read_text().strip()}"}

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool over its HTTP API."""
        with self.client as client:
            answer = client.post(f"/api/tools/{tool}/call", json={"arguments": arguments})
            return answer.json()


@contextmanager
def off(cli: Cli, ahead: float) -> Generator[Off]:
    """Run a daemon whose clock is wrong from its first moment on."""
    script = _AHEAD.format(ns=int(ahead * 1e9))
    environment = cli.environment()
    with Popen(
        (sys.executable, "-c", script), stdout=PIPE, stderr=DEVNULL, env=environment
    ) as made:
        assert made.stdout
        try:
            said = next(line for line in made.stdout if b"address" in line)
            yield Off(made, said.decode().split()[-1])
        finally:
            made.kill()


class Off(NamedTuple):
    """A daemon, and where it serves."""

    process: Popen[bytes]
    url: str


@dataclass(slots=True)
class Cluster:
    """All of them, and the balancer before them."""

    nodes: list[Node]
    database: str
    balancer: Balancer

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    @property
    def client(self) -> httpx.Client:
        """Ask whichever is next, with the administrator's key."""
        address, headers = self.balancer.address, self.nodes[0].headers
        return httpx.Client(base_url=address, headers=headers, timeout=60)

    def kill(self, name: str) -> Node:
        """End one as `kill -9` does; the balancer finds out by itself."""
        node = self[name]
        node.kill()
        return node

    def start(self, name: str) -> Node:
        """Start one again; it may come to another port."""
        node, before = self[name], self[name].address
        node.start()
        self.balancer.nodes[self.balancer.nodes.index(before)] = node.address
        return node


def homes(
    make_home: Callable[[], Cli],
    url: str,
    names: str,
    config: str = "",
    reached: Mapping[str, str] | None = None,
) -> list[Node]:
    """Make homes that share a database and a master key, each with a name of its own.

    `reached` says at which address of the same database a node finds it, if not at `url`.
    """
    first = make_home()
    moved = first("storage", "migrate", "--to", url)
    assert moved.code == 0, moved.err
    (first.home / "openfang.db").unlink()
    nodes = [Node(names[0], first)]
    for name in names[1:]:
        folder = first.home.parent / name / "home"
        _copy(first.home, folder)
        nodes.append(Node(name, Cli(folder, first.pycache)))
    for node in nodes:
        address = (reached or {}).get(node.name, url)
        said = _CONFIG.format(url=json.dumps(address), node=json.dumps(node.name))
        node.cli.configure(f"{said}\n{config}")
    return nodes


def _copy(home: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    for name in _SHARED:
        source = home / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copy2(source, folder / name)


@contextmanager
def clustered(
    make_home: Callable[[], Cli], url: str, names: str = "abc", config: str = ""
) -> Generator[Cluster]:
    """Run them until the test is over; each letter is a node."""
    nodes = homes(make_home, url, names, config)
    with ExitStack() as held:
        balancer = held.enter_context(balancing([]))
        for node in nodes:
            _published(node, balancer.address)
            held.callback(node.end)
            node.start()
            balancer.nodes.append(node.address)
        yield Cluster(nodes, url, balancer)


def _published(node: Node, address: str) -> None:
    """Let a node know under which address everybody else reaches all of them."""
    config = node.cli.home / "config.toml"
    config.write_text(f"public_url = {json.dumps(address)}\n{config.read_text()}")
