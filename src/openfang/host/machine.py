"""What this machine offers: layers for a sandbox, a free port, a disk. All of it blocks.

Each layer is tried, not looked up: a kernel can have one and forbid it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import re
import resource
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.core.values import dataclass
from openfang.host.descendants import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator

_LANDLOCK_CREATE_RULESET: Final = 444
_RULESET_VERSION: Final = 1
_PR_GET_SECCOMP: Final = 21
_SECONDS: Final = 5.0
_INIT: Final = 1
_OCTAL = re.compile(r"\\([0-7]{3})")
_UNSHARE: Final = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a sandbox, and whether it works here."""

    name: str
    present: bool
    detail: str = ""


def user() -> str:
    """Name who runs this process."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def is_there(path: Path) -> bool:
    """Whether something lies there that this process can see."""
    try:
        return path.exists()
    except PermissionError:
        return False


def layers() -> tuple[Layer, ...]:
    """Try every layer that a sandbox can be made of."""
    return (_bubblewrap(), _landlock(), _seccomp(), _namespaces())


def _bubblewrap() -> Layer:
    program = shutil.which("bwrap")
    if program is None:
        return Layer("bwrap", present=False, detail="not installed")
    works = succeeds(program, "--ro-bind", "/", "/", "--unshare-pid", "true")
    return Layer("bwrap", present=works, detail=program if works else "installed, but forbidden")


def _landlock() -> Layer:
    version = ctypes.CDLL(None).syscall(_LANDLOCK_CREATE_RULESET, None, 0, _RULESET_VERSION)
    if version < 1:
        return Layer("landlock", present=False, detail="not in this kernel, or switched off")
    return Layer("landlock", present=True, detail=f"version {version}")


def _seccomp() -> Layer:
    known = ctypes.CDLL(None).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    filters = Path("/proc/sys/kernel/seccomp/actions_avail").exists()
    return Layer("seccomp", present=known and filters, detail="" if known else "not in this kernel")


def _namespaces() -> Layer:
    works = succeeds(sys.executable, "-I", "-S", "-c", _UNSHARE)
    return Layer("user namespaces", present=works, detail="" if works else "forbidden here")


def succeeds(*command: str) -> bool:
    """Whether a program runs here, and ends well. Blocks."""
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def port_problem(host: str, port: int) -> str:
    """Say why nobody could listen there now; nothing when the port is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        return "in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
    return ""


def free_bytes(folder: Path) -> int:
    """Say how much this user may still write there."""
    return shutil.disk_usage(folder).free


def most_open_files() -> int:
    """Say how many files a process of this user may raise its limit to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def file_system(folder: Path) -> str:
    """Say what kind of file system this folder lies on; nothing where that cannot be read."""
    place, kind = f"{folder.resolve()}/", ""
    longest = 0
    for mount in _mounts():
        point, found = mount[1], mount[2]
        prefix = f"{_unescaped(point).rstrip('/')}/"
        if place.startswith(prefix) and len(prefix) >= longest:
            longest, kind = len(prefix), found
    return kind


def _mounts() -> list[list[str]]:
    try:
        return [line.split(" ") for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return []


def _unescaped(point: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), point)


def abandoned(workspaces: Path) -> list[int]:
    """Find processes that a tool started in these folders, and that outlived who ran the tool."""
    folder = f"HOME={workspaces}/".encode()
    return sorted(pid for pid in _processes() if _is_abandoned(pid, folder))


def _processes() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            yield int(entry.name)


def _is_abandoned(pid: int, folder: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    ours = f"{MARK}=".encode() in environment and folder in environment
    return ours and int(status.rpartition(")")[2].split()[1]) == _INIT
