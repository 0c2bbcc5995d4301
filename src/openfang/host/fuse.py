"""A fuse for children that may not outlive a moment, even if this process is stopped by then."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import Final

_CLOSED_SECONDS: Final = 2.0


class Fuse:
    """Tells the process that ends them (`host.fused`) whom, and when. It begins with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: set[int] = set()
        self._until = 0.0

    def watch(self, pid: int) -> None:
        """End this child when the time has run out."""
        self._watched.add(pid)
        self._tell(f"+ {pid}\n")

    def spare(self, pid: int) -> None:
        """Watch it no longer."""
        self._watched.discard(pid)
        self._tell(f"- {pid}\n")

    def until(self, moment: float) -> None:
        """Say when the time runs out, by `CLOCK_BOOTTIME`."""
        self._until = moment
        self._tell(f"until {moment}\n")

    def close(self) -> None:
        """End it, and whoever it still watches."""
        process, self._process = self._process, None
        self._watched.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSED_SECONDS)

    def _tell(self, words: str) -> None:
        if not self._watched and self._process is None:
            return
        if self._process is None or self._process.poll() is not None:
            self._process = _started()
            watched = "".join(f"+ {pid}\n" for pid in self._watched)
            words = f"until {self._until}\n{watched}"
        if self._process.stdin is not None:
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(self._process.stdin.fileno(), words.encode())


def _started() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        (sys.executable, "-P", "-m", "openfang.host.fused"),
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    os.set_blocking(process.stdin.fileno(), False)
    return process
