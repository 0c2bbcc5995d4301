"""What a sandboxed child gets to see by default: its runtime, and what its arguments point at.

Existing folders named in the arguments are its to write, files and the folders around them its to
read. Everything here looks at the disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.host.bridge import interpreter
from openfang.host.household import is_system, real, system
from openfang.host.process import LaunchFailed
from openfang.host.runtimes import find_program, runtimes
from openfang.host.sandbox import Bridged, Confinement, Mount, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.host.household import Household
    from openfang.host.sandbox import Network

_KERNEL: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))
_PROTECTED: Final = tuple(map(Path, ("/etc", "/boot")))
_LONGEST_PATH: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to run, and what the operator lets it see beyond the defaults.

    `search` is the child's PATH, `folder` the child's own: its `home` and `tmp` are made in it. All
    paths are whole.
    """

    argv: tuple[str, ...]
    cwd: Path
    search: str
    folder: Path
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()


def confinement(
    wish: Wish, household: Household, network: Network
) -> tuple[tuple[str, ...], Confinement]:
    """Give the command with its program found, and the confinement that it runs in. Blocks."""
    name = wish.argv[0] if wish.argv else ""
    program = find_program(name, cwd=wish.cwd, search=wish.search)
    mounts, links = system()
    return (str(program), *wish.argv[1:]), Confinement(
        home=_private(wish.folder / "home"),
        tmp=_private(wish.folder / "tmp"),
        cwd=wish.cwd,
        mounts=(
            *mounts,
            *runtimes(program, search=wish.search, household=household),
            *_for_the_bridge(network, household),
            *_named(wish, household),
            *_added(wish, household),
        ),
        links=links,
        masks=household.masks,
        network=network,
    )


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return real(folder)


def _for_the_bridge(network: Network, household: Household) -> Iterator[Mount]:
    if isinstance(network, Bridged):
        yield from runtimes(interpreter(), search="", household=household)


def _named(wish: Wish, household: Household) -> Iterator[Mount]:
    """Show what the arguments point at."""
    writable = list(wish.write)
    for path in sorted(set(_paths(wish)), key=lambda path: len(path.parts)):
        # It is shown already, and a link on the way could be the child's own work.
        if any(within(path, folder) for folder in writable):
            continue
        for mount in _by_default(path, household):
            if mount.writable:
                writable.append(path)
            yield from _in_both_places(mount)


def _added(wish: Wish, household: Household) -> Iterator[Mount]:
    """Show what the operator listed; what cannot be shown is an error and not a gap."""
    for path in (*wish.read, *wish.write):
        if not path.exists():
            raise LaunchFailed(f"{str(path)!r} of fs_read or fs_write does not exist")
        if household.is_ours(real(path)):
            raise LaunchFailed(
                f"{str(path)!r} of fs_read or fs_write lies in the home of OpenFang",
                way_out="name a folder elsewhere",
            )
        yield from _in_both_places(Mount(real(path), path, writable=path in wish.write))


def _in_both_places(mount: Mount) -> Iterator[Mount]:
    """Show a path where its name says it is, and where it is."""
    yield mount
    if mount.source != mount.place:
        yield Mount(mount.source, mount.source, writable=mount.writable)


def _paths(wish: Wish) -> Iterator[Path]:
    """Find existing files and folders in the arguments, also behind an option's `=`."""
    for argument in wish.argv[1:]:
        for text in (argument, argument.partition("=")[2]):
            name = text.removeprefix("file://")
            if name and "\0" not in name and len(name) < _LONGEST_PATH:
                path = Path(os.path.normpath(wish.cwd / name))
                if _is_there(path):
                    yield path


def _is_there(path: Path) -> bool:
    try:
        return path.is_dir() or path.is_file()
    except OSError:
        return False


def _by_default(path: Path, household: Household) -> Iterator[Mount]:
    there = real(path)
    if household.is_ours(there) or _lies_in(there, _KERNEL) or is_system(there):
        return
    if path.is_dir():
        yield Mount(there, path, writable=not _lies_in(there, _PROTECTED))
    elif _shows_too_much(real(path.parent), household):
        yield Mount(there, path)
    else:
        yield from _in_both_places(Mount(real(path.parent), path.parent))
        # The file itself can lie elsewhere.
        yield Mount(there, there)


def _lies_in(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(within(path, folder) for folder in folders)


def _shows_too_much(folder: Path, household: Household) -> bool:
    """Whether a file's folder holds much besides: then the file is shown alone."""
    return household.is_shared(folder) or household.is_hidden(folder)
