"""What the doctor looks at around a home: its daemon, its port, its disk, the machine's limits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openfang.app.daemon.background import end_daemon
from openfang.app.daemon.discovery import FILE, Absent, Daemon, Found, claimed, find_daemon_now
from openfang.app.home.checks import Check, fail, ok, warn
from openfang.host import holders, machine
from openfang.host.backends import Landlocked, Missing, available
from openfang.host.cgroups import hierarchy
from openfang.host.sandbox import Bubblewrap
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from openfang.config.models import Config

_LOW_DISK: Final = 100_000_000
# The daemon takes 1,000 connections at once, and needs some files for itself and its children.
_OPEN_FILES: Final = 1_512
# SQLite's WAL needs memory that all processes share, which file systems of other machines lack.
_REMOTE: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse", "glusterfs", "nfs", "nfs4", "smb3", "smbfs", "vboxsf"}
)


def of_daemon(path: Path, config: Config | None) -> list[Check]:
    """Look for the daemon of the home, and at the port that it listens on."""
    found = find_daemon_now(path) or claimed(path)
    return [_daemon(path, found), *([_port(config, found)] if config else [])]


def _daemon(path: Path, found: Found | Daemon | Absent) -> Check:
    match found:
        case Found(version=version) if version != __version__:
            text = f"{found.url}, process {found.pid}, of version {version}; this is {__version__}"
            return warn("daemon", text, "openfang stop, then openfang start")
        case Found():
            text = f"{found.url}, process {found.pid}, version {found.version}"
            return ok("daemon", f"{text}, since {found.started_at}")
        case Daemon():
            text = f"process {found.pid} should answer at {found.url}, and does not"
            return fail("daemon", text, "wait, or: openfang stop --kill")
        case Absent(why=""):
            return ok("daemon", "none runs; commands work without one")
        case Absent(pid=None):
            fix = f"rm {path / FILE}, or openfang start"
            return warn("daemon", found.why, fix, partial(end_daemon, path, seconds=0))
        case Absent():
            return warn("daemon", found.why, "openfang status")


def _port(config: Config, found: Found | Daemon | Absent) -> Check:
    host, port = config.listen
    problem = machine.port_problem(host, port)
    if not problem:
        return ok("api_listen", f"{config.api_listen} is free")
    if isinstance(found, Found | Daemon) and urlsplit(found.url).port == port:
        return ok("api_listen", f"{config.api_listen} is our daemon's")
    by = holders.listener(port)
    text = f"{config.api_listen}: {problem}{f', by {by}' if by else ''}"
    end = f"kill {by.pid}, or " if by else ""
    return warn("api_listen", text, f"{end}change api_listen, or OPENFANG_LISTEN")


def of_machine(path: Path) -> list[Check]:
    """Look at what the machine offers, also where there is no home yet."""
    places = (path, *path.absolute().parents)
    folder = next(place for place in places if machine.is_there(place))
    return [_disk(folder), _file_system(folder), _open_files(), _sandbox()]


def _disk(folder: Path) -> Check:
    free = machine.free_bytes(folder)
    text = f"{free / 1e6:,.0f} MB free"
    return warn("disk", text, "free some space") if free < _LOW_DISK else ok("disk", text)


def _file_system(folder: Path) -> Check:
    kind = machine.file_system(folder)
    if kind.partition(".")[0] in _REMOTE:
        text = f"{folder} lies on {kind}, where several processes can damage the database"
        return warn("file system", text, "move the home to a local disk, and set OPENFANG_HOME")
    return ok("file system", kind or "unknown")


def _open_files() -> Check:
    most = machine.most_open_files()
    text = f"{most:,} at once"
    if most < _OPEN_FILES:
        return warn("open files", text, f"ulimit -Hn {_OPEN_FILES}, or LimitNOFILE= in its unit")
    return ok("open files", text)


def _sandbox() -> Check:
    """Say what the machine offers, and how servers would run here."""
    words = "; ".join(map(_layer, machine.layers()))
    match available():
        case Missing(reason):
            text = f"servers run without a sandbox: {reason} ({words})"
            return warn("sandbox layers", text, "install bubblewrap")
        case Landlocked(reason=reason):
            text = f"servers run in a degraded sandbox, by Landlock: {reason} ({words})"
            return warn("sandbox layers", text, "install bubblewrap")
        case Bubblewrap(filters=False):
            text = f"servers run in bubblewrap, and no system call is filtered ({words})"
            return warn("sandbox layers", text, "a processor whose numbers we know")
        case Bubblewrap() as found:
            return ok("sandbox layers", f"{', '.join(_kept(found))} ({words})")


def _kept(found: Bubblewrap) -> Iterator[str]:
    """Say what holds each server here, and what does not."""
    yield "servers run in bubblewrap with system calls filtered"
    if not found.makes_networks:
        yield "with a forwarder to the network"
    yield "each as a user of its own" if found.users else "as the user that we are"
    groups = hierarchy()
    yield f"bounded by cgroups, version {groups.version}" if groups else "bounded one by one"


def _layer(layer: machine.Layer) -> str:
    state = "yes" if layer.present else "no"
    return f"{layer.name}: {state} ({layer.detail})" if layer.detail else f"{layer.name}: {state}"
