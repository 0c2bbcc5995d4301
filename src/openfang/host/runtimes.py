"""Where a program really lies, and what it is made of.

It can be a link, a script with an interpreter, a part of a virtual environment, of a package, of a
version manager in the user's home. All of that is shown, the home around it is not. Everything here
looks at the disk.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.host.household import is_system, real
from openfang.host.process import LaunchFailed
from openfang.host.sandbox import Mount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openfang.host.household import Household

_PROGRAMS: Final = frozenset({"bin", "sbin", "shims"})
# The parts of a prefix that programs are made of.
_PARTS: Final = ("bin", "sbin", "lib", "lib64", "libexec", "pyvenv.cfg")
# A prefix with one of these is a runtime as a whole: Homebrew, conda, pyenv and their like. So is
# one with nothing but what a runtime is made of.
_WHOLE: Final = frozenset({"Cellar", "conda-meta", "shims"})
_MADE_OF: Final = frozenset(
    {*_PARTS, "include", "share", "man", "etc", "ssl", ".gitignore", ".lock", "CACHEDIR.TAG"}
    | {"BUILD", "CHANGELOG.md", "LICENSE", "README.md"}
)
_PACKAGE: Final = ("package.json", "pyproject.toml")
_PACKAGE_DEPTH: Final = 4
_MODULES: Final = "node_modules"
_SCRIPTS: Final = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py"})
_HOPS: Final = 16
_SHEBANG = re.compile(rb"\A#![ \t]*(\S+)(?:[ \t]+([^\n]*))?")
_LONGEST_SHEBANG: Final = 512
_HOME = re.compile(r"^home\s*=\s*(/\S.*?)\s*$", re.MULTILINE)


def find_program(name: str, *, cwd: Path, search: str) -> Path:
    """Find a program by the child's PATH, or relative to the child's folder."""
    found = shutil.which(str(cwd / name) if "/" in name else name, path=search)
    if found is None:
        raise LaunchFailed(
            f"The program {name!r} was not found",
            way_out=f"install it, or check: command -v {name}",
        )
    return _whole(Path(found))


def runtimes(program: Path, *, search: str, household: Household) -> Iterator[Mount]:
    """Show what the program and the other programs of its PATH are made of."""
    for entry in dict.fromkeys(search.split(os.pathsep)):
        changed = _changed(entry)
        if changed and entry.startswith("/"):
            shown = _folder_once(entry, changed, household)
            yield from _believed(Path(entry), shown, household)
    waiting, seen = [program], set[Path]()
    while waiting and len(seen) < _HOPS:
        file = waiting.pop()
        if file not in seen and file.exists():
            seen.add(file)
            yield from _believed(file, _around(file, household), household)
            behind = _behind(file, search)
            waiting.extend(path for path in behind if household.may_lead(file, path))


def _believed(start: Path, mounts: Iterable[Mount], household: Household) -> Iterator[Mount]:
    """Leave out what a child could have led us to."""
    return (mount for mount in mounts if household.may_lead(start, mount.source))


def _whole(path: Path) -> Path:
    """Make a path whole without following its links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow them


def _changed(folder: str) -> int:
    """When something was last added to a folder or taken out of it; 0 when there is none."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - at every start, for every folder
    except OSError:
        return 0


@lru_cache(256)
def _folder_once(folder: str, changed: int, household: Household) -> tuple[Mount, ...]:
    """Look again only when a program came or went."""
    del changed
    return tuple(_folder(Path(folder), household)) if Path(folder).is_dir() else ()


def _folder(folder: Path, household: Household) -> Iterator[Mount]:
    """Show a folder of programs where it is, and where its name says it is."""
    there = real(folder)
    if is_system(there) or household.is_shared(there) or household.is_hidden(there):
        return
    yield from (Mount(path, path) for path in _prefix(there, household))
    if there != folder and not is_system(folder):
        yield Mount(there, folder)


def _prefix(folder: Path, household: Household) -> Iterator[Path]:
    """Give what belongs to the programs of a folder."""
    prefix = folder.parent
    # What a home or the root of the machine holds has nothing to do with its `bin`.
    alone = folder.name not in _PROGRAMS or prefix == prefix.parent or household.is_shared(prefix)
    if alone:
        yield folder
        return
    names = set(os.listdir(prefix))  # noqa: PTH208 - names only
    # What people install for themselves shares its prefix with what their programs keep.
    if prefix != household.user / ".local" and (names & _WHOLE or names <= _MADE_OF):
        yield prefix
    else:
        yield from (prefix / name for name in _PARTS if name in names)
    if "pyvenv.cfg" in names:
        yield from _elsewhere(prefix, household)


def _elsewhere(environment: Path, household: Household) -> Iterator[Path]:
    """Give what a virtual environment uses and does not hold: its interpreter, linked packages."""
    settings = environment / "pyvenv.cfg"
    home = _HOME.search(settings.read_text(errors="replace"))
    if home and not is_system(real(Path(home[1]))) and household.may_lead(settings, Path(home[1])):
        yield from _prefix(real(Path(home[1])), household)
    for packages in environment.glob("lib/python*/site-packages"):
        for name in os.listdir(packages):  # noqa: PTH208 - names only, and many of them
            if name.endswith(".pth"):
                yield from _linked(packages / name, household)


def _linked(file: Path, household: Household) -> Iterator[Path]:
    for line in file.read_text(errors="replace").splitlines():
        folder = real(Path(line.strip()))
        believed = household.may_lead(file, folder) and not _is_private(folder, household)
        if line.startswith("/") and folder.is_dir() and believed:
            yield folder


def _is_private(path: Path, household: Household) -> bool:
    return household.is_shared(path) or household.is_hidden(path)


def _around(file: Path, household: Household) -> Iterator[Mount]:
    """Show a program's folder, and the package that it belongs to."""
    place = real(file.parent) / file.name
    if is_system(place):
        return
    if _is_private(place.parent, household):
        yield Mount(real(place), file)
        return
    yield from _folder(file.parent, household)
    yield from package(place, household)


def is_script(path: Path) -> bool:
    """Whether its name says that an interpreter runs it."""
    return path.suffix in _SCRIPTS


def package(place: Path, household: Household) -> Iterator[Mount]:
    """Show the package that a file belongs to, and the folders where Node looks for others."""
    found = next(_packages(place, household), None)
    if found is not None:
        yield Mount(found, found)
    if place.suffix == ".py" or (found is None and not is_script(place)):
        return
    for folder in place.parents:
        modules = folder if folder.name == _MODULES else folder / _MODULES
        believed = household.may_lead(modules, modules)
        if modules.is_dir() and believed and not household.is_hidden(real(modules)):
            yield Mount(real(modules), modules)


def _packages(place: Path, household: Household) -> Iterator[Path]:
    for folder in place.parents[:_PACKAGE_DEPTH]:
        if _is_private(folder, household):
            return
        if any((folder / name).is_file() for name in _PACKAGE):
            yield folder


def _behind(file: Path, search: str) -> Iterator[Path]:
    """Give what a link leads to, or what a script's first line names."""
    if file.is_symlink():
        yield _whole(file.parent / file.readlink())
        return
    try:
        with file.open("rb") as script:
            match = _SHEBANG.match(script.read(_LONGEST_SHEBANG))
    except OSError:
        return
    if match:
        yield Path(os.fsdecode(match[1]))
        yield from _by_env(os.fsdecode(match[1]), os.fsdecode(match[2] or b"").split(), search)


def _by_env(interpreter: str, words: list[str], search: str) -> Iterator[Path]:
    """`#!/usr/bin/env -S node --flag` runs the first word that is neither option nor variable."""
    names = [word for word in words if not word.startswith("-") and "=" not in word]
    found = shutil.which(names[0], path=search) if names else None
    if found and interpreter.endswith("/env"):
        yield Path(found)
