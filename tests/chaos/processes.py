"""Processes as the kernel shows them: whose they are, and what they take."""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.node import UPSTREAM

if TYPE_CHECKING:
    from tests.faults.daemon import Daemon

_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of whatever loses its own below us, so that nothing goes unseen."""
    assert ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) == 0


def descendants(pid: int) -> list[int]:
    """Everybody below a process."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def words(pid: int) -> list[str]:
    """What a process was started with; nothing if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    return []


def servers(daemon: Daemon) -> dict[str, int]:
    """The programs behind the node's servers: not the sandboxes around them."""
    found: dict[str, int] = {}
    for pid in descendants(daemon.process.pid):
        match words(pid):
            case [program, *_, script, name] if script == str(UPSTREAM) and "bwrap" not in program:
                found[name] = pid
            case _:
                pass
    return found


def orphans(known: set[int]) -> list[str]:
    """Who is below us and below nobody whom we know; those who have ended are taken leave of."""
    ours = {child for pid in known for child in (pid, *descendants(pid))}
    left = [pid for pid in descendants(os.getpid()) if pid not in ours and not _reaped(pid)]
    return [" ".join(words(pid)) or str(pid) for pid in left]


def _reaped(pid: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return not Path(f"/proc/{pid}").exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What a daemon takes while nobody calls."""

    files: Counter[str]
    sockets: int
    children: int
    threads: int
    memory: int


def vitals(daemon: Daemon) -> Vitals:
    files = Counter(daemon.files())
    files.pop("user", None)  # a namespace for each child's own user, kept for its next start
    return Vitals(
        sockets=files.pop("socket", 0),
        files=files,
        children=len(descendants(daemon.process.pid)),
        threads=daemon.threads(),
        memory=daemon.memory(),
    )
