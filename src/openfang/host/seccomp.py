"""Which system calls a sandboxed child may not make, as a program for the kernel. Pure.

A deny list: what servers in Node and Python need stays open; what widens a child's world, or has
been a way into the kernel, does not. Each processor has its own numbers; calls by another one's
(32-bit entries, x32) do not exist for the child. `clone3` does not either: its flags lie in memory
where no filter sees them, and libc falls back to `clone`, whose flags it does see.
"""

from __future__ import annotations

import errno
import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

Step: TypeAlias = tuple[int, int, int, int]

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_MASK: Final = 0x54
_RETURN: Final = 0x06
_NUMBER, _PROCESSOR, _ARGUMENTS = 0, 4, 16
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_X32: Final = 0x40000000
# New namespaces: mount, cgroup, uts, ipc, user, pid, network.
_NAMESPACES: Final = 0x7E020000
# Lent to whoever runs a file: its owner's rights, or its group's. The owner is who we are.
_LENT_RIGHTS: Final = 0o6000
# Typing into a terminal for whoever reads it next.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
AF_UNIX, AF_INET, AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_TYPE: Final = 0xF
_SOCK_STREAM: Final = 1

# By topic; the number on x86_64, and the one of all newer processors.
_DENIED: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "keyrings": ((250, 219), (248, 217), (249, 218)),
    "programs in the kernel": ((321, 280), (298, 241)),  # bpf, perf_event_open
    "io_uring": ((425, 425), (426, 426), (427, 427)),
    "faults handled by users": ((323, 282),),
    # ptrace, process_vm_*, process_madvise, kcmp, pidfd_getfd
    "other processes": ((101, 117), (310, 270), (311, 271), (440, 440), (312, 272), (438, 438)),
    # mount, umount2, pivot_root, chroot, open_tree ... fspick, mount_setattr, open_tree_attr
    "mounts": (
        *((165, 40), (166, 39), (155, 41), (161, 51), (442, 442), (467, 467)),
        *((number, number) for number in range(428, 434)),
    ),
    "namespaces": ((272, 97), (308, 268)),
    "files by handle": ((304, 265), (303, 264)),
    "another kernel": ((246, 104), (320, 294), (169, 142)),
    "modules": ((175, 105), (313, 273), (176, 106)),
    # swapon, swapoff, acct, quotactl, quotactl_fd, syslog, vhangup, lookup_dcookie, nfsservctl
    "the machine": (
        *((167, 224), (168, 225), (163, 89), (179, 60), (443, 443)),
        *((103, 116), (153, 58), (212, 18), (180, 42)),
    ),
    # settimeofday, clock_settime, clock_adjtime, sethostname, setdomainname
    "clock and name": ((164, 170), (227, 112), (305, 266), (170, 161), (171, 162)),
    "everybody's files": ((300, 262), (301, 263)),  # fanotify
}
# iopl, ioperm, modify_ldt
_DENIED_ON_X86: Final = (172, 173, 154)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """The numbers of a processor: its own, and those of calls that are looked into."""

    audit: int
    denied: tuple[int, ...]
    clone: int
    ioctl: int
    socket: int
    # Each with which of its arguments is the mode.
    chmods: tuple[tuple[int, int], ...]
    has_x32: bool = False


_CLONE3: Final = 435
PROCESSORS: Final[Mapping[str, Processor]] = {
    "x86_64": Processor(
        audit=0xC000003E,
        denied=(*(pair[0] for group in _DENIED.values() for pair in group), *_DENIED_ON_X86),
        clone=56,
        ioctl=16,
        socket=41,
        chmods=((90, 1), (91, 1), (268, 2), (452, 2)),
        has_x32=True,
    ),
    "aarch64": Processor(
        audit=0xC00000B7,
        denied=tuple(pair[1] for group in _DENIED.values() for pair in group),
        clone=220,
        ioctl=29,
        socket=198,
        chmods=((52, 1), (53, 2), (452, 2)),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """Which sockets a child may make: by default what an own network namespace keeps harmless."""

    unix: bool = True
    internet: bool = True
    datagrams: bool = True


def filter_program(machine: str, sockets: Sockets = Sockets()) -> bytes:  # noqa: B008 - frozen
    """Give the kernel's program for this processor; empty for one that we have no numbers of."""
    processor = PROCESSORS.get(machine)
    if processor is None:
        return b""
    return b"".join(struct.pack("=HBBI", *step) for step in _steps(processor, sockets))


def _steps(processor: Processor, sockets: Sockets) -> list[Step]:
    strange = [(_AT_LEAST, 0, 1, _X32), _refuse(errno.ENOSYS)] if processor.has_x32 else []
    return [
        (_LOAD, 0, 0, _PROCESSOR),
        (_EQUAL, 1, 0, processor.audit),
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        *strange,
        *_when(_CLONE3, [_refuse(errno.ENOSYS)]),
        *_when(processor.clone, _without_bits(0, _NAMESPACES)),
        *_when(processor.ioctl, _without_values(1, (_TIOCSTI, _TIOCLINUX))),
        *_when(processor.socket, _of_families(sockets)),
        *(
            step
            for number, mode in processor.chmods
            for step in _when(number, _without_bits(mode, _LENT_RIGHTS))
        ),
        *(step for number in processor.denied for step in _when(number, [_refuse(errno.EPERM)])),
        _allow(),
    ]


def _allow() -> Step:
    return (_RETURN, 0, 0, _ALLOW)


def _refuse(number: int) -> Step:
    return (_RETURN, 0, 0, _ERROR | number)


def _when(value: int, then: list[Step]) -> list[Step]:
    """Take these steps if what was loaded last has this value."""
    return [(_EQUAL, 0, len(then), value), *then]


def _argument(index: int) -> Step:
    """Load the lower half of an argument, which is all that the kernel reads of these."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _without_bits(index: int, bits: int) -> list[Step]:
    return [_argument(index), (_ANY_BIT, 0, 1, bits), _refuse(errno.EPERM), _allow()]


def _without_values(index: int, values: tuple[int, ...]) -> list[Step]:
    refusals = (step for value in values for step in _when(value, [_refuse(errno.EPERM)]))
    return [_argument(index), *refusals, _allow()]


def _of_families(sockets: Sockets) -> list[Step]:
    """Unix and internet, and of netlink what lists the network's devices; nothing else."""
    steps = [_argument(0)]
    if sockets.unix:
        steps += _when(AF_UNIX, [_allow()])
    if sockets.internet:
        then = [_allow()] if sockets.datagrams else _of_streams()
        steps += [*_when(AF_INET, then), *_when(AF_INET6, then)]
    steps += _when(_AF_NETLINK, [_argument(2), *_when(0, [_allow()])])
    return [*steps, _refuse(errno.EAFNOSUPPORT)]


def _of_streams() -> list[Step]:
    masked: Step = (_MASK, 0, 0, _SOCK_TYPE)
    return [_argument(1), masked, *_when(_SOCK_STREAM, [_allow()]), _refuse(errno.EACCES)]
