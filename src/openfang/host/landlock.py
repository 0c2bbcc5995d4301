"""Landlock: a process gives up every path, port and peer but those that it names, for good.

The second-best sandbox, for machines where nobody may make namespaces. The kernel grows: what a
version cannot hold is told by `Version`, and the filter of system calls holds some of it instead.
`restriction` gives what a child does between fork and exec: it calls the kernel and nothing else.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_ASK_VERSION: Final = 1
_PATH_RULE, _PORT_RULE = 1, 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_ALL_OF_THE_FIRST: Final = (1 << 13) - 1
_REFER, _TRUNCATE, _DEVICE_IOCTL = 1 << 13, 1 << 14, 1 << 15
_BIND, _CONNECT = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_READ: Final = _EXECUTE | _READ_FILE | _READ_FOLDER
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_IOCTL
_PR_SET_NO_NEW_PRIVS: Final = 38
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


@dataclass(frozen=True, slots=True)
class Version:
    """What a kernel's Landlock can hold."""

    number: int

    @property
    def files(self) -> int:
        """The accesses to files that it knows."""
        since = ((_REFER, 2), (_TRUNCATE, 3), (_DEVICE_IOCTL, 5))
        later = sum(bit for bit, version in since if self.number >= version)
        return _ALL_OF_THE_FIRST | later

    @property
    def holds_ports(self) -> bool:
        """Whether it can keep a child from TCP ports."""
        return self.number >= 4  # noqa: PLR2004 - of the kernel's making

    @property
    def holds_peers(self) -> bool:
        """Whether it can keep a child from others' abstract sockets, and from signalling them."""
        return self.number >= 6  # noqa: PLR2004 - as above

    @property
    def ruleset(self) -> bytes:
        """What is given up, in the length that this version reads."""
        net = _BIND | _CONNECT if self.holds_ports else None
        scoped = _ABSTRACT_SOCKETS | _SIGNALS if self.holds_peers else None
        words = [word for word in (self.files, net, scoped) if word is not None]
        return struct.pack(f"={len(words)}Q", *words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What stays open to a child: paths with all below them, and TCP ports of anybody's."""

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    ports: tuple[int, ...] = ()


def version() -> Version | None:
    """Ask the kernel; None where it has no Landlock, or has it switched off."""
    number = int(_libc.syscall(_CREATE, None, 0, _ASK_VERSION))
    return Version(number) if number > 0 else None


def restriction(fence: Fence, known: Version) -> Callable[[], None]:
    """Give what a child does to keep to a fence. Looks at the disk."""
    ruleset = known.ruleset
    paths = [(str(path), _rights(path, _READ, known)) for path in fence.read]
    paths += [(str(path), _rights(path, known.files, known)) for path in fence.write]
    ports = fence.ports if known.holds_ports else ()

    def prepare() -> None:
        rules = _called(_libc.syscall(_CREATE, ruleset, len(ruleset), 0))
        for path, rights in paths:
            _open_path(rules, path, rights)
        for port in ports:
            rule = struct.pack("=QQ", _CONNECT, port)
            _called(_libc.syscall(_ADD_RULE, rules, _PORT_RULE, rule, 0))
        _called(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _called(_libc.syscall(_RESTRICT, rules, 0))
        os.close(rules)

    return prepare


def _rights(path: Path, wanted: int, known: Version) -> int:
    return wanted & known.files & (-1 if path.is_dir() else _OF_FILES)


def _open_path(rules: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    rule = struct.pack("=Qi", rights, file)
    _called(_libc.syscall(_ADD_RULE, rules, _PATH_RULE, rule, 0))
    os.close(file)


def _called(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
