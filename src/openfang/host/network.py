"""A network of a child's own: a loopback device and, on it, the one socket that leads to us.

The child makes the network between fork and exec, opens the socket that our proxy will listen on
inside of it, and hands that socket over. So nothing of ours runs among the child's processes, and
the way out is open before the program's first instruction. An ordinary user needs a user namespace
for it; where the system keeps those from us, see `host.bridge`.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Outside of the ports that the kernel gives away by itself.
PORT: Final = 61_088
HOST: Final = "127.0.0.1"
BACKLOG: Final = 128
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_SIOCSIFFLAGS: Final = 0x8914
_LOOPBACK_UP: Final = struct.pack("16sH14x", b"lo", 0x41)
_SECONDS: Final = 5.0
_libc = ctypes.PyDLL(None, use_errno=True)


def own_network(theirs: socket.socket) -> Callable[[], None]:
    """Give what a child does to get a network of its own and to send its socket to `theirs`."""
    user, group = os.geteuid(), os.getegid()

    def prepare() -> None:
        _leave_our_network(user, group)
        with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
            fcntl.ioctl(listener, _SIOCSIFFLAGS, _LOOPBACK_UP)
            listener.bind((HOST, PORT))
            listener.listen(BACKLOG)
            socket.send_fds(theirs, [b"x"], [listener.fileno()])

    return prepare


def received_listener(ours: socket.socket) -> socket.socket | None:
    """Take a socket that a child has sent; None when none is there."""
    _, files, _, _ = socket.recv_fds(ours, 1, 1, socket.MSG_CMSG_CLOEXEC)
    return socket.socket(fileno=files[0]) if files else None


def can_make_networks() -> bool:
    """Try it, in a process that does nothing else. Blocks."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            done = subprocess.run(
                (sys.executable, "-I", "-S", "-c", "pass"),
                preexec_fn=own_network(theirs),
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return False
    return done.returncode == 0


def _leave_our_network(user: int, group: int) -> None:
    if _libc.unshare(_CLONE_NEWNET) == 0:
        return
    if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    # We stay who we are. Groups have to be given up before they may be mapped.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)
