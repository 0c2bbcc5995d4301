"""What a sandboxed child gets to see by default: its runtime, and what its arguments point at.

Existing folders named in the arguments are its to write, files and the folders around them its to
read. Everything here looks at the disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.bridge import interpreter
from openfang.host.household import is_system, links, real, system
from openfang.host.process import LaunchFailed
from openfang.host.runtimes import find_program, is_script, package, runtimes
from openfang.host.sandbox import Bridged, Confinement, Mask, Mount, within
from openfang.host.sockets import sockets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from openfang.host.household import Household
    from openfang.host.sandbox import Network

_KERNEL: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))
_PROTECTED: Final = tuple(map(Path, ("/etc", "/boot")))
_LONGEST_PATH: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to run, and what the operator lets it see beyond the defaults.

    `search` is the child's PATH; `home` and `tmp` are the child's own, and are made. `workspace` is
    one more that whoever starts it lets it write. Arguments that are not `trusted` open nothing.
    All paths are whole.
    """

    argv: tuple[str, ...]
    cwd: Path
    search: str
    home: Path
    tmp: Path
    trusted: bool = True
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    workspace: Path | None = None


def confinement(
    wish: Wish, household: Household, network: Network
) -> tuple[tuple[str, ...], Confinement]:
    """Give the command with its program found, and the confinement that it runs in. Blocks."""
    name = wish.argv[0] if wish.argv else ""
    program = find_program(name, cwd=wish.cwd, search=wish.search)
    mounts, found_links = system()
    home, tmp = _private(wish.home), _private(wish.tmp)
    own = (home, tmp, *map(real, (*wish.write, *([wish.workspace] if wish.workspace else []))))
    named = list(_named(wish, replace(household, writable=own)))
    wary = replace(household, writable=(*own, *_writable(named)))
    opened = [*named, *_of_the_script(wish, wary), *_added(wish, wary)]
    return (str(program), *wish.argv[1:]), Confinement(
        home=home,
        tmp=tmp,
        cwd=wish.cwd,
        mounts=(
            *mounts,
            *runtimes(program, search=wish.search, household=wary),
            *_for_the_bridge(network, wary),
            *_guarded(opened),
            *opened,
        ),
        links=found_links,
        masks=(*household.masks, *_closed(household, opened), *sockets(), *map(Mask, _KERNEL)),
        network=network,
    )


def _writable(mounts: Iterable[Mount]) -> Iterator[Path]:
    return (mount.source for mount in mounts if mount.writable)


def _guarded(mounts: Iterable[Mount]) -> Iterator[Mount]:
    """Show what is never written read-only, inside of what is; named itself it wins over this."""
    kept = [path for path in _PROTECTED if path.is_dir() and path == real(path)]
    kept += [mount.source for mount in system()[0] if is_system(mount.source)]
    for mount in mounts:
        for path in kept:
            if mount.writable and path != mount.source and within(path, mount.source):
                yield Mount(path, mount.place / path.relative_to(mount.source))


def _closed(household: Household, mounts: Iterable[Mount]) -> Iterator[Mask]:
    """Hide folders of keys that are not there yet, where the child would find them later.

    Nothing can be laid over nothing, so they are made: empty, and for the user alone.
    """
    writable = tuple(_writable(mounts))
    for path in household.absent:
        if _lies_in(path, writable):
            with suppress(OSError):
                path.mkdir(mode=0o700, parents=True)
            if path.is_dir():
                yield Mask(path)


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return real(folder)


def _for_the_bridge(network: Network, household: Household) -> Iterator[Mount]:
    if isinstance(network, Bridged):
        yield from runtimes(interpreter(), search="", household=household)


def _named(wish: Wish, household: Household) -> Iterator[Mount]:
    """Show what the arguments point at."""
    paths = sorted(set(_paths(wish)), key=lambda path: len(path.parts))
    named = {path: real(path) for path in paths if path.is_dir()}
    folders = {path: there for path, there in named.items() if _may_be_shown(there, household)}
    shown = list(household.writable)
    for path in paths:
        others = (folder for one, folder in folders.items() if one != path)
        # It is shown already, or a link on the way could be the child's own work.
        if _lies_in(path, shown) or _is_led(path, (*household.writable, *others)):
            continue
        for mount in _by_default(path, household):
            if mount.writable:
                shown += (path, mount.source)
            yield from _in_both_places(mount)


def _is_led(path: Path, folders: Sequence[Path]) -> bool:
    """Whether who can write to these folders can lead a path elsewhere."""
    return any(_lies_in(link, folders) for link in links(path))


def _of_the_script(wish: Wish, household: Household) -> Iterator[Mount]:
    """Show the package of what an interpreter is to run: the first script that is named."""
    scripts = (path for path in _paths(wish) if is_script(path) and path.is_file())
    script = next(scripts, None)
    if script is None or is_system(real(script)) or _is_led(script, household.writable):
        return
    for mount in package(real(script), household):
        if not _lies_in(mount.place, household.writable):
            yield mount


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
        if _is_led(path, household.writable):
            raise LaunchFailed(
                f"{str(path)!r} of fs_read or fs_write leads through a link that the program"
                " could have made: it lies where the program may write",
                way_out=f"name {str(real(path))!r} itself, if that is what you mean",
            )
        yield from _in_both_places(Mount(real(path), path, writable=path in wish.write))


def _in_both_places(mount: Mount) -> Iterator[Mount]:
    """Show a path where its name says it is, and where it is."""
    yield mount
    if mount.source != mount.place:
        yield Mount(mount.source, mount.source, writable=mount.writable)


def _paths(wish: Wish) -> Iterator[Path]:
    """Find existing files and folders in the arguments, also behind an option's `=`."""
    for argument in wish.argv[1:] if wish.trusted else ():
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
    if not _may_be_shown(there, household):
        return
    if path.is_dir():
        # Who may write around the link that led here could lead it elsewhere.
        writable = not (_lies_in(there, _PROTECTED) or _is_led(path, (there,)))
        yield Mount(there, path, writable=writable)
    elif _shows_too_much(real(path.parent), household):
        yield Mount(there, path)
    else:
        yield from _in_both_places(Mount(real(path.parent), path.parent))
        # The file itself can lie elsewhere.
        yield Mount(there, there)


def _may_be_shown(there: Path, household: Household) -> bool:
    return not (household.is_ours(there) or _lies_in(there, _KERNEL) or is_system(there))


def _lies_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(within(path, folder) for folder in folders)


def _shows_too_much(folder: Path, household: Household) -> bool:
    """Whether a file's folder holds much besides: then the file is shown alone."""
    return household.is_shared(folder) or household.is_hidden(folder)
