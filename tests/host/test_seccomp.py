"""The filter of system calls, run as the kernel would run it."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.host.seccomp import AF_INET, AF_INET6, AF_UNIX, PROCESSORS, Sockets, filter_program

pytestmark = pytest.mark.requirement("C16.1")

ALLOWED = 0x7FFF0000
EPERM, ENOSYS, NO_FAMILY, EACCES = (
    0x50000 | number for number in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT, errno.EACCES)
)
MACHINES = sorted(PROCESSORS)
# By their names, from the kernel's headers: x86_64 first, then the table of newer processors.
NUMBERS = {
    "read": (0, 63), "openat": (257, 56), "execve": (59, 221), "futex": (202, 98),
    "mmap": (9, 222), "connect": (42, 203), "kill": (62, 129), "prctl": (157, 167),
    "seccomp": (317, 277), "wait4": (61, 260), "epoll_pwait": (281, 22), "getrandom": (318, 278),
    "pidfd_open": (434, 434), "memfd_create": (319, 279), "inotify_init1": (294, 26),
    "statx": (332, 291), "openat2": (437, 437), "socketpair": (53, 199), "rseq": (334, 293),
}  # fmt: skip
REFUSED = {
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "perf_event_open": (298, 241), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428), "fsopen": (430, 430),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "open_by_handle_at": (304, 265), "reboot": (169, 142), "swapon": (167, 224),
    "pidfd_getfd": (438, 438), "chroot": (161, 51), "syslog": (103, 116),
}  # fmt: skip


def run(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """Take the steps, and give what is returned in the end."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, audit, 0, *values)
    steps = list(struct.iter_unpack("=HBBI", program))
    loaded = at = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, value)
            case 0x54:
                loaded &= value
            case 0x15 | 0x35 | 0x45:
                met = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
                at += yes if met[code] else no
            case 0x06:
                return value
            case _:
                pytest.fail(f"a step that we do not use: {code:#x}")


def decided(machine: str, number: int, *arguments: int, sockets: Sockets | None = None) -> int:
    program = filter_program(machine, sockets or Sockets())
    return run(program, PROCESSORS[machine].audit, number, *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_programs_live_of_is_allowed_and_what_hurts_is_not(machine: str) -> None:
    column = 0 if machine == "x86_64" else 1
    for name, numbers in NUMBERS.items():
        assert decided(machine, numbers[column]) == ALLOWED, name
    for name, numbers in REFUSED.items():
        assert decided(machine, numbers[column]) == EPERM, name


@pytest.mark.parametrize("machine", MACHINES)
def test_no_file_is_made_to_lend_its_owners_rights(machine: str) -> None:
    for number, mode in PROCESSORS[machine].chmods:
        before = [0] * mode
        assert decided(machine, number, *before, 0o755) == ALLOWED
        assert decided(machine, number, *before, 0o4755) == EPERM
        assert decided(machine, number, *before, 0o2755) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_clone_makes_threads_and_processes_and_no_namespaces(machine: str) -> None:
    clone = PROCESSORS[machine].clone
    assert decided(machine, clone, 0x3D0F00) == ALLOWED  # a thread
    assert decided(machine, clone, 0x01200011) == ALLOWED  # a process
    for namespace in (0x20000, *(1 << bit for bit in range(25, 31))):
        assert decided(machine, clone, namespace | 17) == EPERM
    # Its flags lie where nobody sees them; libc takes the older call then.
    assert decided(machine, 435) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_nobody_types_into_a_terminal_for_others(machine: str) -> None:
    ioctl = PROCESSORS[machine].ioctl
    assert decided(machine, ioctl, 0, 0x5412) == EPERM
    assert decided(machine, ioctl, 0, 0xFFFFFFFF_00005412) == EPERM  # the kernel reads one half
    assert decided(machine, ioctl, 0, 0x5401) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_of_the_families_that_programs_use(machine: str) -> None:
    socket = PROCESSORS[machine].socket
    for family in (AF_UNIX, AF_INET, AF_INET6):
        assert decided(machine, socket, family, 2) == ALLOWED
    assert decided(machine, socket, 16, 3, 0) == ALLOWED  # which devices are there
    for family, protocol in ((16, 12), (17, 0), (38, 0), (40, 0), (44, 0)):
        assert decided(machine, socket, family, 3, protocol) == NO_FAMILY
    closed = Sockets(unix=False, datagrams=False)
    assert decided(machine, socket, AF_UNIX, 1, sockets=closed) == NO_FAMILY
    assert decided(machine, socket, AF_INET, 0x80801, sockets=closed) == ALLOWED
    assert decided(machine, socket, AF_INET, 0x80802, sockets=closed) == EACCES
    assert decided(machine, socket, AF_INET, 1, sockets=Sockets(internet=False)) == NO_FAMILY


@given(number=st.integers(0, 0xFFFFFFFF), audit=st.integers(0, 0xFFFFFFFF))
def test_calls_in_numbers_of_another_processor_do_not_exist(number: int, audit: int) -> None:
    for machine, processor in PROCESSORS.items():
        program = filter_program(machine)
        if audit != processor.audit or (number >= 0x40000000 and machine == "x86_64"):
            assert run(program, audit, number) == ENOSYS
        else:
            assert run(program, audit, number) in {ALLOWED, EPERM, ENOSYS, NO_FAMILY}


def test_a_processor_without_numbers_gets_no_filter() -> None:
    assert filter_program("riscv64") == b""
