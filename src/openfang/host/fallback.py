"""The degraded sandbox: Landlock and a filter of system calls, where namespaces cannot be made.

The child lives among everybody's processes and on the machine's own network. It opens only what the
confinement shows, connects to our proxy's port or to nothing, and makes neither unix sockets nor
datagrams. What it cannot have: a `/tmp` and a process table of its own, and folders that look empty
where something in them is hidden: such a folder is opened entry by entry instead.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.landlock import Fence, Version, restriction, version
from openfang.host.process import in_turn
from openfang.host.sandbox import Local, within
from openfang.host.seccomp import Sockets, filter_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from openfang.host.process import Launch
    from openfang.host.sandbox import Confinement, Network

_DEVICES: Final = tuple(
    Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom")
)
_KERNEL: Final = tuple(
    Path("/proc", name)
    for name in (
        *("self", "cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime"),
        "version",
    )
)
_PROCESSORS: Final = Path("/sys/devices/system/cpu")
# Where a file that does not exist is no problem for a program, one that it may not open is.
_SETTINGS: Final = tuple(
    Path("/etc", name)
    for name in (
        *("ssl/openssl.cnf", "host.conf", "gai.conf", "resolv.conf", "services", "protocols"),
        *("mime.types", "os-release", "gitconfig", "locale.alias", "terminfo", "bash.bashrc"),
    )
)
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT = 22, 24, 47
_FILTER: Final = 2
_CLEAR_ALL: Final = 4
_CAPABILITIES: Final = 64
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION: Final = 0x20080522
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


def fenced(launch: Launch, confinement: Confinement, landlock: int) -> Launch:
    """Start the same behind a fence. Looks at the disk."""
    network = confinement.network
    prepare = in_turn(
        launch.prepare,
        _powerless,
        restriction(_fence(confinement), Version(landlock)),
        _filtered(_sockets(network)),
    )
    return replace(launch, cwd=confinement.start, prepare=prepare)


def fence_version() -> int:
    """The version of Landlock, if this machine has all that the degraded sandbox needs; else 0."""
    found = version()
    return found.number if found and filter_program(os.uname().machine) else 0


def _fence(confinement: Confinement) -> Fence:
    opened = [(mount.source, mount.writable) for mount in confinement.mounts]
    opened += [(confinement.home, True), (confinement.tmp, True)]
    hidden = [mask.path for mask in confinement.masks if not _is_socket(mask.path)]
    kept = [path for path, writable in opened if not writable]
    read = {one for path in kept for one in _openings(path, hidden)}
    written = (path for path, writable in opened if writable)
    write = {one for path in written for one in _openings(path, [*hidden, *kept])}
    network = confinement.network
    return Fence(
        read=(*read, *_KERNEL, _PROCESSORS, *_SETTINGS),
        write=(*write, *_DEVICES),
        ports=(network.port,) if isinstance(network, Local) else (),
    )


def _openings(path: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """Give a path, or what lies in it but for what is hidden there: a rule cannot be taken back."""
    inner = [one for one in hidden if one != path and within(one, path)]
    if not inner:
        yield path
        return
    for entry in _entries(path):
        if entry not in inner:
            yield from _openings(entry, inner)


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return ()


def _is_socket(path: Path) -> bool:
    """Whether it is one: nobody in there can make the end of a line to it."""
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


def _sockets(network: Network) -> Sockets:
    return Sockets(unix=False, internet=isinstance(network, Local), datagrams=False)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What has to stay in memory until the kernel has read it."""

    program: ctypes.Array[ctypes.c_char]
    pointer: ctypes.Array[ctypes.c_char]


def _filtered(sockets: Sockets) -> Callable[[], None]:
    """Give what a child does to have its system calls filtered from now on."""
    steps = filter_program(os.uname().machine, sockets)
    program = ctypes.create_string_buffer(steps, len(steps))
    header = struct.pack("@HP", len(steps) // 8, ctypes.addressof(program))
    kept = _Kept(program, ctypes.create_string_buffer(header, len(header)))

    def prepare() -> None:
        where = ctypes.addressof(kept.pointer)
        if _libc.prctl(_PR_SET_SECCOMP, _FILTER, where, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    return prepare


def _powerless() -> None:
    """Give up every capability, also those that root would get back by starting a program."""
    for number in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    if _libc.syscall(_CAPSET[os.uname().machine], header, bytes(24)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
