"""Run inside a mount namespace: a daemon whose home is on a tmpfs of a few MB, which is filled up.

Prints one JSON object; `test_disk.py` reads it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.faults.daemon import NO_LIMITS, Daemon, make_home, serving
from tests.faults.on_a_small_disk import fill, mounted

_TRIES = 2000
WRITE = "/api/tools/file_write/call"
COUNT = "SELECT COUNT(*) FROM audit WHERE event = 'tool_invocation_start'"
READS = ("/api/health", "/api/status", "/api/tools", "/api/keys", "/metrics")
RECORDED: tuple[tuple[str, str, Any], ...] = (
    ("POST", WRITE, {"arguments": {"path": "never", "content": "x"}}),
    ("POST", "/api/tools/memory_store/call", {"arguments": {"key": "k", "value": 1}}),
    ("POST", "/api/tools/shell_exec/call", {"arguments": {"command": ["true"]}}),
    ("POST", "/api/tools/no_such_tool/call", {}),
    ("POST", "/api/keys", {"name": "one-more"}),
    ("POST", "/api/specs", {"name": "plan", "content": "a plan"}),
)


def served(disk: Path) -> dict[str, Any]:
    """Serve, fill the disk up, see what still works, make room, see that everything does."""
    home = make_home(disk / "home", f"[audit]\ncheckpoint_seconds = 0.2\n{NO_LIMITS}")
    files = home.path / "workspaces" / "key-admin"
    with serving(home) as daemon:
        seen: dict[str, Any] = {"before": _write(daemon, "before")}
        seen["too_large"] = _too_large(daemon, disk)
        filler = fill(disk)
        seen["refused"] = _until_refused(daemon)
        begun = home.rows(COUNT)
        seen["recorded"] = [_refused(daemon, *request) for request in RECORDED]
        seen["ready"] = daemon.ask("GET", "/api/ready").status
        seen["reads"] = [daemon.ask("GET", path).status for path in READS]
        seen["nothing_began"] = home.rows(COUNT) == begun
        seen["files"] = sorted(file.name for file in files.iterdir())
        filler.unlink()
        seen["after"] = _write(daemon, "after")
        seen["intact_while_served"] = daemon.ask("GET", "/api/audit/verify").json["intact"]
    seen["code"] = daemon.ended()
    filler = fill(disk)
    seen["alone"] = home.run("tools", "call", "system_time").stderr.partition("\n")[0]
    filler.unlink()
    seen["intact"] = home.verified()["intact"]
    seen["endings"] = sorted({len(outcomes) for outcomes in home.endings().values()})
    seen["traced"] = "Traceback" in home.log.read_text()
    return seen


def _write(daemon: Daemon, name: str) -> str:
    return daemon.call("file_write", path=name, content="x").json["outcome"]


def _too_large(daemon: Daemon, disk: Path) -> str:
    """Write what does not fit: not even a part of it is left."""
    filler = fill(disk)
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - 1_300_000)
    outcome = daemon.call("file_write", path="large", content="x" * 900_000).json["outcome"]
    filler.unlink()
    return outcome


def _until_refused(daemon: Daemon) -> tuple[int, str, str]:
    """Use up what is left of the pages that the database has already."""
    for _ in range(_TRIES):
        answer = daemon.call("system_time")
        if answer.status != 200:
            return answer.status, answer.rule, answer.headers["retry-after"]
    raise AssertionError("it never refused")


def _refused(daemon: Daemon, method: str, path: str, body: object) -> tuple[int, str]:
    answer = daemon.ask(method, path, body)
    return answer.status, answer.rule


if __name__ == "__main__":
    print(json.dumps(served(mounted(Path(sys.argv[2])))))  # noqa: T201 - the test reads it
