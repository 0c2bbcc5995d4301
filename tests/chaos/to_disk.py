"""A disk without room, and a database that somebody else holds: nothing happens off the record."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.faults import Fault
from tests.chaos.node import until
from tests.faults.daemon import SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.ledger import Seen
    from tests.chaos.node import Node

ROOM = "size=1g"
_HOLDER = Path(__file__).with_name("holder.py")
# The last two are the words of A2A for the first two.
_UNWRITABLE = frozenset(
    {"audit_unavailable", "unrecorded", "is_error", "failed", "-32000", "-32603"}
)
_TRIES = 500
_LARGE = 200_000


def mount(disk: Path) -> None:
    """Make a disk that only we and our children see."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", ROOM, "tmpfs", str(disk)], check=True)


def unmount(disk: Path) -> None:
    subprocess.run(["umount", str(disk)], check=True)


class Unwritable(Fault):
    """What needs a record is refused, what has begun cannot be told, and agents forget nothing."""

    kinds = _UNWRITABLE

    def explains(self, seen: Seen) -> bool:
        unkept = (seen.way, seen.answer.kind) == ("agent", "source_failed")
        return unkept or super().explains(seen)


class DiskFull(Unwritable):
    """No byte is left on the disk of the home: it is made as small as what is on it."""

    name = "a full disk"

    def __init__(self, node: Node, disk: Path) -> None:
        self._node = node
        self._disk = disk

    def begin(self) -> None:
        until(self._shrunk)
        for number in range(_TRIES):  # the database has pages and a log that it uses up first
            answer = self._node.daemon.call(
                "memory_store", key=f"full-{number}", value="x" * _LARGE
            )
            if answer.status == 503:
                return
        raise AssertionError("it never refused")

    def felt(self, seen: Sequence[Seen]) -> bool:
        return sum(one.answer.kind == "audit_unavailable" for one in seen) >= 10

    def end(self) -> None:
        assert self._remount(ROOM)
        until(lambda: self._node.daemon.call("system_time").status == 200)
        until(lambda: self._node.daemon.ask("GET", "/api/ready").status == 200)

    def _shrunk(self) -> bool:
        found = os.statvfs(self._disk)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        return self._remount(f"size={used}")  # refused if somebody has just written

    def _remount(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,{size}", str(self._disk)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Locked(Unwritable):
    """Another program is in the middle of a change."""

    name = "a locked database"

    def __init__(self, node: Node) -> None:
        self._node = node
        self._holder: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        command = [sys.executable, str(_HOLDER), str(self._node.home.path / "openfang.db")]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"held\n"

    def end(self) -> None:
        assert self._holder
        with suppress(BrokenPipeError), self._holder:
            self._holder.communicate(timeout=SECONDS)
        until(lambda: self._node.daemon.call("system_time").status == 200)
