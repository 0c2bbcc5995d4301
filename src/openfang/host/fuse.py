"""A fuse for children that may not outlive a moment, even if this process is stopped by then."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLOSED_SECONDS: Final = 2.0


class Fuse:
    """Tells the process that ends them (`host.fused`) whom, and when. It begins with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: dict[int, float] = {}

    def watch(self, pid: int, until: float) -> None:
        """End this child, unless told otherwise, at a moment of `CLOCK_BOOTTIME`."""
        self._watched[pid] = until
        self._tell({pid: until})

    def spare(self, pid: int) -> None:
        """Watch it no longer."""
        if self._watched.pop(pid, None) is not None:
            self._write(f"{pid} -\n")

    def close(self) -> None:
        """End it, and whoever it still watches."""
        process, self._process = self._process, None
        self._watched.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSED_SECONDS)

    def _tell(self, watched: Mapping[int, float]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process, watched = _started(), self._watched
        self._write("".join(f"{pid} {until}\n" for pid, until in watched.items()))

    def _write(self, words: str) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(BrokenPipeError, BlockingIOError):
                os.write(process.stdin.fileno(), words.encode())


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
