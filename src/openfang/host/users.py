"""A user of its own for each child of a daemon that runs as root.

Nothing on the disk changes hands. The child's user is a number that nobody else has, and what the
child may see is mounted so that root's files are this user's there: it works in them as if it were
root, and what it writes is root's. Outside of these mounts it is a stranger: to other children's
files, to processes of ours, and to the limit of processes, which does not hold root.

`becoming` gives what a child does between fork and exec; bubblewrap then runs as that user.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# Numbers that neither people nor containers are given.
_FIRST: Final = 1_900_000_000
_MANY: Final = 100_000_000
_MOST: Final = 256
_namespaces: dict[int, int] = {}
# Mounted over in the child's own mount namespace; no sandbox shows it.
_STAGE: Final = Path("/sys")
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_REC_PRIVATE: Final = 0x44000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_CLONE_TREE: Final = 1 | os.O_CLOEXEC | _AT_RECURSIVE
_MOVE_OPENED: Final = 4
_ATTR_IDMAP: Final = 0x100000
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mount.argtypes = (*(ctypes.c_char_p,) * 3, ctypes.c_ulong, ctypes.c_char_p)


def own_user(folder: Path) -> int:
    """Give the number of whoever lives in this folder: always the same, and hardly another's."""
    digest = sha256(os.fsencode(folder)).digest()
    return _FIRST + int.from_bytes(digest[:8]) % _MANY


@dataclass(frozen=True, slots=True)
class Stage:
    """The paths that are handed to another user, and where it finds them meanwhile."""

    user: int
    sources: tuple[Path, ...]

    def place(self, source: Path) -> Path:
        """Say where a path is found; one that is not handed over stays where it is."""
        for number, handed in enumerate(self.sources):
            if source.parts[: len(handed.parts)] == handed.parts:
                return _STAGE / str(number) / source.relative_to(handed)
        return source

    def becoming(self) -> Callable[[], None]:
        """Give what a child does to become the user, with these paths in its hands."""
        namespace = _namespace(self.user)
        sources = [os.fsencode(source) for source in self.sources]
        places = [os.fsencode(_STAGE / str(number)) for number in range(len(sources))]
        folders = [source.is_dir() for source in self.sources]

        def prepare() -> None:
            _called(_libc.unshare(_CLONE_NEWNS))
            _called(_libc.mount(None, b"/", None, _MS_REC_PRIVATE, None))
            trees = [_handed(source, namespace) for source in sources]
            _called(_libc.mount(b"tmpfs", bytes(_STAGE), b"tmpfs", 0, b"mode=755"))
            for tree, place, folder in zip(trees, places, folders, strict=True):
                _lay(tree, place, folder=folder)
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)

        return prepare


def staged(user: int, sources: Iterable[Path]) -> Stage | None:
    """Choose the outermost of these paths; None where one cannot be handed over. Blocks."""
    outer: list[Path] = []
    for source in sorted(set(sources), key=lambda path: (len(path.parts), path)):
        if not any(source.parts[: len(one.parts)] == one.parts for one in outer):
            outer.append(source)
    return Stage(user, tuple(outer)) if _can_be_handed(user, outer) else None


def _can_be_handed(user: int, sources: Sequence[Path]) -> bool:
    """Try it: not every file system can show its files as another user's."""
    try:
        namespace = _namespace(user)
        for source in sources:
            os.close(_handed(os.fsencode(source), namespace))
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _handed(source: bytes, namespace: int) -> int:
    """Open what is mounted at a path once more, with root's files as the other user's."""
    tree = _called(_libc.syscall(_OPEN_TREE, _AT_FDCWD, source, _CLONE_TREE))
    attributes = struct.pack("=4Q", _ATTR_IDMAP, 0, 0, namespace)
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    if _libc.syscall(_MOUNT_SETATTR, tree, b"", flags, attributes, len(attributes)) != 0:
        error = ctypes.get_errno()
        os.close(tree)
        raise OSError(error, os.strerror(error))
    return tree


def _lay(tree: int, place: bytes, *, folder: bool) -> None:
    if folder:
        os.mkdir(place)  # noqa: PTH102 - between fork and exec
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    _called(_libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, place, _MOVE_OPENED))


def _namespace(user: int) -> int:
    """Keep a user namespace open that says who is who for this user."""
    if user not in _namespaces:
        while len(_namespaces) >= _MOST:
            os.close(_namespaces.pop(next(iter(_namespaces))))
        _namespaces[user] = _made(user)
    return _namespaces[user]


def _leave_our_users() -> None:
    _called(_libc.unshare(_CLONE_NEWUSER))


def _made(user: int) -> int:
    """Make a user namespace in which root is this user, and the others are themselves."""
    with subprocess.Popen(
        ("/bin/cat",),
        stdin=subprocess.PIPE,
        preexec_fn=_leave_our_users,  # noqa: PLW1509 - it calls the kernel and nothing else
    ) as holder:
        for name in ("uid_map", "gid_map"):
            text = f"0 {user} 1\n1 1 {_FIRST - 1}"
            Path(f"/proc/{holder.pid}/{name}").write_text(text)
        return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


@cache
def can_change_users(*command: str) -> bool:
    """Try whether this command runs as another user, who sees a file of root's as his own."""
    if os.geteuid() != 0:
        return False
    stage = staged(_FIRST + _MANY, [Path("/root")] if Path("/root").is_dir() else [])
    with suppress(OSError, subprocess.SubprocessError):
        return stage is not None and _runs(command, stage)
    return False


def _runs(command: Sequence[str], stage: Stage) -> bool:
    done = subprocess.run(  # noqa: S603 - our own words
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=stage.becoming(),
        timeout=5.0,
        check=False,
    )
    return done.returncode == 0


def _called(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
