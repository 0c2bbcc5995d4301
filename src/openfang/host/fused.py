"""The process that ends children when their time has run out, whatever became of their parent.

A parent that was stopped, or hangs, ends nobody: its children live on. This one is told on its
standard input whom to end (`+ PID`, `- PID`) and when (`until SECONDS` of `CLOCK_BOOTTIME`, which
counts the time in which the machine slept). When that has come, or nobody is there to tell it, it
ends them, with all that they started. It imports next to nothing: it is there for a node's life.
"""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Final

from openfang.host.descendants import end_all, mark_of, start_time

_FOREVER: Final = 3600.0
_CHUNK: Final = 4096


class Fused:
    """Whom to end, and when."""

    __slots__ = ("_children", "_until")

    def __init__(self) -> None:
        self._children: dict[int, int] = {}
        self._until = 0.0

    def told(self, line: str) -> None:
        """Hear one word of the parent's."""
        word, _, value = line.partition(" ")
        if word == "+":
            self._children[int(value)] = start_time(int(value))
        elif word == "-":
            self._children.pop(int(value), None)
        elif word == "until":
            self._until = float(value)

    @property
    def left(self) -> float:
        """In how many seconds it is time; for ever, if there is nobody to end."""
        return max(0.0, self._until - _now()) if self._children else _FOREVER

    def end(self) -> None:
        """End them all."""
        for pid, started in self._children.items():
            if started:
                end_all(pid, mark_of(pid), started)
        self._children.clear()


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main() -> None:
    """Listen until the parent has gone."""
    fused, rest = Fused(), b""
    while True:
        ready, _, _ = select.select([0], [], [], fused.left)
        said = os.read(0, _CHUNK) if ready else b""
        if ready and not said:
            fused.end()
            sys.exit(0)
        *lines, rest = (rest + said).split(b"\n")
        for line in lines:
            fused.told(line.decode())
        if not fused.left:
            fused.end()


if __name__ == "__main__":
    main()
