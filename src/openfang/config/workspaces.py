"""Where an agent's workspace may lie: where it can rewrite nothing that governs it, or others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.config.fields import Folders

FOLDER: Final = "workspaces"
_SYSTEM: Final = tuple(
    Path("/", name)
    for name in (
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32"),
        *("proc", "run", "sbin", "sys", "usr", "var/run"),
    )
)


def may_be_workspace(folder: str, folders: Folders, roots: Iterable[str]) -> bool:
    """Whether a folder is one of the home's workspaces, or lies in a root that is good for it."""
    there, home = _real(Path(folder)), _real(folders.home)
    if home / FOLDER in there.parents:
        return True
    allowed = any(_within(there, _real(Path(root))) for root in roots)
    return allowed and _apart(there, home) and not _delicate(there, _real(folders.user))


def _delicate(there: Path, user: Path) -> bool:
    """Whether it holds what is the system's, or what programs of the user keep for themselves."""
    if any(_within(there, system) or _within(system, there) for system in _SYSTEM):
        return True
    if _within(user, there):
        return True
    return _within(there, user) and any(
        part.startswith(".") for part in there.relative_to(user).parts
    )


def _apart(there: Path, home: Path) -> bool:
    return not _within(there, home) and not _within(home, there)


def _within(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _real(path: Path) -> Path:
    # `Path.resolve` raises where links run in a circle.
    return Path(os.path.realpath(path))
