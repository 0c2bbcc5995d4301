"""Everything that a child has started, as /proc shows it, and its end.

A child is made the reaper of its own orphans (`host.process`), so that while it lives no descendant
can leave its tree, not even by `setsid`. What is left when a child has ended by itself is found by
its session and by a mark in its environment. A descendant that dropped that mark and outlived the
child is beyond this: a process namespace holds it.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK: Final = "OPENFANG_RUN"
_DEAD: Final = frozenset({b"Z", b"X"})
_PATIENCE: Final = 0.8
_PAUSE: Final = 0.005
_CHUNK: Final = 65_536


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table; `started` tells it from a later one with the same number."""

    pid: int
    parent: int
    session: int
    started: int
    alive: bool


def end_all(root: int, mark: str, started: int) -> bool:
    """Kill what the child `root` started, then the child; say whether all of it is gone.

    The child is stopped first and killed last: dead, it would no longer hold its orphans together.
    """
    child = Process(pid=root, parent=0, session=root, started=started, alive=True)
    _send(child, signal.SIGSTOP)
    gone = _end_family(root, mark, started)
    _send(child, signal.SIGKILL)
    return gone


def _end_family(root: int, mark: str, started: int) -> bool:
    """Kill until a look around finds nobody: who was about to fork is found by the next look."""
    deadline = time.monotonic() + _PATIENCE
    while family := [one for one in _family(root, mark, started) if one.pid != root]:
        if time.monotonic() > deadline:
            return False
        for one in family:
            _send(one, signal.SIGKILL)
        time.sleep(_PAUSE)
    return True


def start_time(pid: int) -> int:
    """When a process started, in the kernel's ticks; 0 for one that is gone."""
    found = _process(pid)
    return found.started if found else 0


def mark_of(pid: int) -> str:
    """Read the mark that a child was given; empty if it is gone."""
    begins = f"{MARK}=".encode()
    found = (one for one in _read(f"/proc/{pid}/environ").split(b"\0") if one.startswith(begins))
    return next(found, b"").removeprefix(begins).decode(errors="replace")


def tree(root: int) -> set[int]:
    """Find a process and all that it has started, as far as none of them has left its parents."""
    return _tree(root, list(_processes()))


def _family(root: int, mark: str, started: int) -> list[Process]:
    """Find what is alive of the child's tree, its session and its mark; older processes are not."""
    table = [one for one in _processes() if one.started >= started]
    tree = _tree(root, table)
    return [
        one
        for one in table
        if one.alive and (one.pid in tree or one.session == root or _marked(one.pid, mark))
    ]


def _tree(root: int, table: Iterable[Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for one in table:
        children.setdefault(one.parent, []).append(one.pid)
    tree, edge = {root}, [root]
    while edge:
        edge = [pid for parent in edge for pid in children.get(parent, ()) if pid not in tree]
        tree.update(edge)
    return tree


def _processes() -> Iterator[Process]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only, and many of them
        found = _process(int(name)) if name.isdigit() else None
        if found:
            yield found


def _process(pid: int) -> Process | None:
    # The name of the program, in brackets, may hold anything; the fields behind it are numbers.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    return Process(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        alive=fields[0] not in _DEAD,
    )


def _marked(pid: int, mark: str) -> bool:
    return bool(mark) and f"{MARK}={mark}".encode() in _read(f"/proc/{pid}/environ").split(b"\0")


def _read(path: str) -> bytes:
    """Read a file of /proc; empty when the process has gone or is not ours to look at."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(file, _CHUNK), b""))
    except OSError:
        return b""
    finally:
        os.close(file)


def _send(process: Process, number: signal.Signals) -> None:
    """Signal exactly this process, and not one that has taken its number since."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        again = _process(process.pid)
        if again and again.started == process.started:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
