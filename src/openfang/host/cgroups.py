"""Bounds on a child and all that it starts together, where a hierarchy of cgroups is ours to write.

Version 2 comes first, then version 1, else there are none. A group lies below our own, and is
removed when its child has ended; what a killed daemon left is swept by the next. All of it blocks.

In version 2 a group that bounds those below it may hold no process itself. Where a service manager
has handed a group to us (`Delegate=`), the daemon moves into a room of its own in it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.descendants import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME: Final = "openfang-"
_CONTROLLERS: Final = ("memory", "pids")
_LOOKS: Final = 100
_PATIENCE: Final = 0.5
_PAUSE: Final = 0.005
_MEMBERS: Final = "cgroup.procs"
_ROOM: Final = "daemon"
_HANDED: Final = "user.delegate"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Our own group in each hierarchy that counts memory or processes, and its version."""

    version: int
    folders: tuple[tuple[str, Path], ...]

    def made(self, *, memory: int | None, processes: int | None) -> Group:
        """Make a group with these bounds."""
        name = f"{NAME}{os.getpid()}-{token_hex(8)}"
        bounds = {"memory": memory, "pids": processes}
        group = Group(tuple(dict.fromkeys(folder / name for _, folder in self.folders)))
        try:
            for folder in group.folders:
                folder.mkdir()
            for controller, folder in self.folders:
                bound = bounds[controller]
                if bound is not None:
                    self._file(controller, folder / name).write_text(str(bound))
        except OSError:
            group.remove()
            raise
        return group

    def _file(self, controller: str, folder: Path) -> Path:
        older = self.version == 1 and controller == "memory"
        return folder / ("memory.limit_in_bytes" if older else f"{controller}.max")


@dataclass(frozen=True, slots=True)
class Group:
    """A group of one child's."""

    folders: tuple[Path, ...]

    def join(self, pid: int) -> None:
        """Count a running child here with all it has started.

        The kernel may take ten milliseconds for it, so the child does not wait for this. Whoever
        forks meanwhile is found by the next look.
        """
        for folder in self.folders:
            file = folder / _MEMBERS
            for _ in range(_LOOKS):
                outside = tree(pid) - _members(file)
                if not outside:
                    break
                for one in sorted(outside):
                    with suppress(OSError):  # it has ended
                        file.write_text(str(one))

    def remove(self) -> None:
        """Remove it, once the last of its processes is gone; else it is left for a later sweep."""
        deadline = time.monotonic() + _PATIENCE
        left = [folder for folder in self.folders if not _gone(folder)]
        while left and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            left = [folder for folder in left if not _gone(folder)]


@cache
def hierarchy() -> Hierarchy | None:
    """Find a hierarchy that we may write, by trying; sweep what others left there."""
    for found in (_second(), _first()):
        if found is not None and _works(found):
            for _, folder in found.folders:
                _sweep(folder)
            return found
    return None


def _works(found: Hierarchy) -> bool:
    try:
        group = found.made(memory=1 << 30, processes=64)
    except OSError:
        return False
    group.remove()
    return True


def _second() -> Hierarchy | None:
    for kind, point, _ in _mounts():
        own = _own_groups().get("")
        if kind == "cgroup2" and own is not None:
            folder = opened(point / own, _CONTROLLERS)
            if folder is not None:
                return Hierarchy(2, tuple((name, folder) for name in _CONTROLLERS))
    return None


def opened(own: Path, controllers: Sequence[str]) -> Path | None:
    """Say below which group children's may be made: our own, or one that was handed to us."""
    if _opens(own, controllers):
        return own
    if _handed(own.parent) and _opens(own.parent, controllers):
        return own.parent
    if _handed(own) and _made_room(own) and _opens(own, controllers):
        return own
    return None


def _opens(folder: Path, controllers: Sequence[str]) -> bool:
    words = " ".join(f"+{name}" for name in controllers)
    try:
        (folder / "cgroup.subtree_control").write_text(words)
    except OSError:
        return False
    return True


def _handed(folder: Path) -> bool:
    """Whether the service manager has left it to us; root may write everywhere, and should not."""
    try:
        return os.getxattr(folder, _HANDED) == b"1"
    except OSError:
        return False


def _made_room(own: Path) -> bool:
    """Move into a room below our group, if nobody but us and our children is there."""
    here = _members(own / _MEMBERS)
    if not here <= tree(os.getpid()):
        return False
    room = own / _ROOM
    try:
        room.mkdir(exist_ok=True)
        for one in sorted(here):
            (room / _MEMBERS).write_text(str(one))
    except OSError:
        return False
    return True


def _first() -> Hierarchy | None:
    own = _own_groups()
    folders = {
        name: point / own[name]
        for kind, point, options in _mounts()
        for name in _CONTROLLERS
        if kind == "cgroup" and name in options and name in own
    }
    return Hierarchy(1, tuple(sorted(folders.items()))) if len(folders) > 1 else None


def _mounts() -> Iterator[tuple[str, Path, list[str]]]:
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, point, kind, options, *_ = line.split(" ")
            if kind.startswith("cgroup"):
                yield kind, Path(point), options.split(",")


def _own_groups() -> dict[str, str]:
    """Read which group we are in, by controller; the second version's has no name."""
    groups = dict[str, str]()
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups |= dict.fromkeys(controllers.split(","), path.strip("/"))
    return groups


def _members(file: Path) -> set[int]:
    try:
        return set(map(int, file.read_text().split()))
    except OSError:
        return set()


def _gone(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _sweep(folder: Path) -> None:
    for left in folder.glob(f"{NAME}*"):
        pid = left.name.removeprefix(NAME).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            _gone(left)
