"""A daemon in the background, from the side of who starts and ends it. All of it blocks."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.app.daemon.discovery import LOCK, Absent, Daemon, claimed, remove
from openfang.core.errors import Conflict, HomeError
from openfang.host.detach import Detach, first_words, running

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_READY_SECONDS: Final = 60.0
_KILL_SECONDS: Final = 5.0
_TAIL: Final = 2_000
# What belongs to the command that starts it, and to nobody who calls later.
_OF_THE_COMMAND: Final = frozenset({"TRACEPARENT", "X_OPENSTARRY_TRACE_ID", "OPENFANG_CHAIN"})


def log_file(home: Path) -> Path:
    """Say where a daemon without a terminal writes to."""
    return home / "logs" / "daemon.log"


def start_apart(
    home: Path, environ: Mapping[str, str], *, listen: str | None, any_port: bool
) -> tuple[Daemon, list[str]]:
    """Start a daemon in the background, and return when it is healthy, with what to beware of."""
    home = home.absolute()
    wishes = orjson.dumps({"listen": listen, "any_port": any_port}).decode()
    kept = {name: value for name, value in environ.items() if name not in _OF_THE_COMMAND}
    # -P: the folder that it runs in is no place to import from.
    detach = Detach(
        argv=(sys.executable, "-P", "-m", "openfang.app.daemon.apart", wishes),
        cwd=home,
        environment={**kept, "OPENFANG_HOME": str(home)},
        output=log_file(home),
    )
    before = _size(detach.output)
    words = first_words(detach, _READY_SECONDS)
    if not words:
        raise _silent(detach.output, before)
    body = cast("dict[str, Any]", orjson.loads(words))
    if "error" in body:
        raise HomeError(**body["error"])
    return Daemon(**body["daemon"]), body["warnings"]


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _silent(log: Path, before: int) -> HomeError:
    with log.open("rb") as file:
        file.seek(max(before, _size(log) - _TAIL))
        said = file.read().decode(errors="replace").strip()
    return HomeError(
        f"The daemon ended before it was ready{': ' if said else '.'}{said}", way_out=f"see {log}"
    )


def end_daemon(home: Path, *, seconds: float, kill: bool = False) -> int | None:
    """End the daemon of a home and wait for its end; return which process it was."""
    pid = claimed(home).pid
    if pid is None:
        _tidy(home)
        return None
    with running(pid) as process:
        # Held now; and if it still has the lock, it is not another one of the same number.
        if claimed(home).pid != pid:
            return pid
        if process is None or not process.has_open(home / LOCK):
            raise _not_ours(pid)
        process.send(signal.SIGKILL if kill else signal.SIGTERM)
        if not process.ended(_KILL_SECONDS if kill else seconds):
            raise _still_there(claimed(home), pid, seconds, kill=kill)
    _tidy(home)
    return pid


def _not_ours(pid: int) -> Conflict:
    return Conflict(
        f"The home's lock names process {pid}, but that one cannot be seen to hold it from here.",
        way_out="end the daemon where it was started, in its container; or wait for a restore",
    )


def _still_there(claim: Daemon | Absent, pid: int, seconds: float, *, kill: bool) -> Conflict:
    if kill:
        return Conflict(f"Process {pid} cannot be killed now.", way_out=f"ps -o stat,wchan {pid}")
    # It takes its address back as soon as it is told to end.
    told = not isinstance(claim, Daemon)
    why = "its calls have not ended" if told else "it did not answer"
    return Conflict(
        f"The daemon, process {pid}, still runs after {seconds:g} s; {why}.",
        way_out="wait, or: openfang stop --kill",
    )


def _tidy(home: Path) -> None:
    """Take away what a killed daemon could not."""
    if claimed(home).pid is None:
        remove(home)
