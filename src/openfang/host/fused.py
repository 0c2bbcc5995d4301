"""The process that ends children when their time has run out, whatever became of their parent.

A parent that was stopped, or hangs, ends nobody: its children live on. This one is told on its
standard input whom to end and when (`PID SECONDS` of `CLOCK_BOOTTIME`, which counts the time in
which the machine slept; `PID -` spares one). When that has come, or nobody is there to tell it, it
ends the child, with all that it started. It imports next to nothing: it is there for a node's life.
"""

from __future__ import annotations

import os
import select
import sys
import time
from math import inf
from typing import Final

from openfang.host.descendants import end_all, mark_of, start_time

_FOREVER: Final = 3600.0
_CHUNK: Final = 4096


class Fused:
    """Whom to end, and when."""

    __slots__ = ("_children",)

    def __init__(self) -> None:
        self._children: dict[int, tuple[int, float]] = {}

    def told(self, line: str) -> None:
        """Hear one word of the parent's."""
        pid, _, moment = line.partition(" ")
        number = int(pid)
        if moment == "-":
            self._children.pop(number, None)
        else:
            started = self._children.get(number, (0, 0.0))[0] or start_time(number)
            self._children[number] = started, float(moment)

    @property
    def left(self) -> float:
        """In how many seconds it is the next one's time; for ever, if there is nobody to end."""
        soonest = min((until for _, until in self._children.values()), default=None)
        return _FOREVER if soonest is None else max(0.0, soonest - _now())

    def end(self, now: float) -> None:
        """End those whose time has come by then."""
        over = {pid: one for pid, one in self._children.items() if one[1] <= now}
        for pid, (started, _) in over.items():
            if started:
                end_all(pid, mark_of(pid), started)
            del self._children[pid]


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main() -> None:
    """Listen until the parent has gone."""
    fused, rest = Fused(), b""
    while True:
        ready, _, _ = select.select([0], [], [], fused.left)
        said = os.read(0, _CHUNK) if ready else b""
        if ready and not said:
            fused.end(inf)
            sys.exit(0)
        *lines, rest = (rest + said).split(b"\n")
        for line in lines:
            fused.told(line.decode())
        fused.end(_now())


if __name__ == "__main__":
    main()
