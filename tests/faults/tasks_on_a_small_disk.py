"""Run inside a mount namespace: a node with agents on a tmpfs of a few MB, which is filled up.

Prints one JSON object; `test_tasks_bounds.py` reads it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.faults.daemon import Home, serving
from tests.faults.dialects import (
    DIALECTS,
    RPC1,
    TARGET,
    Dialect,
    Sending,
    state_of,
)
from tests.faults.on_a_small_disk import fill, mounted
from tests.faults.tasks import (
    ENABLED,
    PUSHED,
    Peer,
    home_with_agents,
    reading,
)
from tests.faults.test_mcp import until

_TRIES = 2000
_FINAL = {"completed", "failed", "canceled", "rejected"}
_HALVES = """
    SELECT 'event', task FROM task_events WHERE task NOT IN (SELECT id FROM tasks)
    UNION ALL SELECT 'push', task FROM pushes WHERE task NOT IN (SELECT id FROM tasks)
    UNION ALL SELECT 'timer', subject FROM timers
        WHERE kind = 'push' AND subject NOT IN (SELECT id FROM tasks)
    UNION ALL SELECT 'session', id FROM sessions WHERE id NOT IN (SELECT session FROM tasks)
    UNION ALL SELECT 'task', id FROM tasks WHERE (SELECT COUNT(*) FROM task_events
        WHERE task = tasks.id) != version
"""


def served(disk: Path) -> dict[str, Any]:
    """Serve, fill the disk up, see what still works, make room, see that everything does."""
    home = home_with_agents(disk / "home", ENABLED + PUSHED)
    home.log.symlink_to(disk.with_suffix(".log"))  # there is room for what it says
    with serving(home) as daemon:
        peer = Peer(daemon)
        seen: dict[str, Any] = {"before": _sent(peer)}
        with reading(peer, "pipe") as (task, _):
            filler = fill(disk)
            _until_refused(peer)
            seen["refused"] = {one.name: _refused(peer, one) for one in DIALECTS}
            seen["meanwhile"] = [_state(home, task)]
        until(lambda: _is_owed(home, task))
        seen["meanwhile"] += [_state(home, task)]
        seen["by_halves"] = home.rows(_HALVES)
        filler.unlink()
        until(lambda: _state(home, task) in _FINAL)
        status = RPC1.task(peer.of_task("get", task, "reader"))["status"]
        seen["ended"] = [status["state"], status["message"]["parts"][0]["text"][:62]]
        seen["after"] = _sent(peer)
        seen["by_halves"] += home.rows(_HALVES)
    seen["intact"] = home.verified()["intact"]
    seen["endings"] = sorted({len(outcomes) for outcomes in home.endings().values()})
    seen["broken"] = '"exception":' in home.log.read_text()
    return seen


def _refused(peer: Peer, dialect: Dialect) -> int:
    return dialect.code(peer.ask(dialect.send(Sending(push=TARGET))))


def _sent(peer: Peer) -> str:
    return state_of(peer.send(Sending(push=TARGET)))


def _state(home: Home, task: str) -> str:
    return home.rows("SELECT state FROM tasks WHERE id = ?", (task,))[0][0]


def _is_owed(home: Home, task: str) -> bool:
    """Whether the node has tried to write the end of a task, and could not."""
    lines = home.log.read_text().splitlines()
    return any("openfang.tasks" in line and task in line and "full" in line for line in lines)


def _until_refused(peer: Peer) -> None:
    """Use up what is left of the pages that the database has already."""
    for _ in range(_TRIES):
        if RPC1.code(peer.ask(RPC1.send(Sending(waits=False)))):
            return
    raise AssertionError("it never refused")


if __name__ == "__main__":
    print(json.dumps(served(mounted(Path(sys.argv[2])))))  # noqa: T201 - the test reads it
