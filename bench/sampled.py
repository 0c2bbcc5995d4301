"""`python -m bench.sampled start ...`: an `openfang` that notes where its CPU goes.

SIGUSR1 begins, and SIGUSR1 again writes what was seen to `samples` in its home: one stack of
functions a line, outermost first, and how often it was met. The timer runs while the process
works, and not while it waits; a function of C belongs to the function that called it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import openfang

if TYPE_CHECKING:
    from types import CodeType, FrameType

EVERY = 0.001
SAMPLES = "samples"
_SOURCE = f"{Path(openfang.__file__).parent}{os.sep}"
_LIBRARIES = f"{os.sep}site-packages{os.sep}"


def _name(code: CodeType) -> str:
    """File and function, within our package or a library's."""
    whole, file = code.co_filename, ""
    if whole.startswith(_SOURCE):
        file = whole.removeprefix(_SOURCE)
    elif _LIBRARIES in whole:
        file = whole.partition(_LIBRARIES)[2]
    return file and f"{file}:{code.co_name}"


class Sampler:
    """Counts stacks while it is on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = Counter[str]()
        self._on = False

    def sample(self, _: int, frame: FrameType | None) -> None:
        """Note where the main thread is."""
        stack: list[str] = []
        while frame is not None:
            if name := _name(frame.f_code):
                stack.append(name)
            frame = frame.f_back
        self._seen[" ".join(reversed(stack))] += 1

    def turn(self, _: int, __: FrameType | None) -> None:
        """Begin, or end and write."""
        self._on = not self._on
        signal.setitimer(signal.ITIMER_PROF, EVERY * self._on, EVERY * self._on)
        if not self._on:
            lines = [f"{count} {stack}\n" for stack, count in self._seen.most_common()]
            self._seen.clear()
            written = self._file.with_suffix(".new")
            written.write_text("".join(lines))
            written.rename(self._file)


def main() -> None:
    sampler = Sampler(Path(os.environ["OPENFANG_HOME"]) / SAMPLES)
    signal.signal(signal.SIGPROF, sampler.sample)
    signal.signal(signal.SIGUSR1, sampler.turn)
    from openfang.__main__ import main as run  # noqa: PLC0415 - what it imports is not of interest

    sys.exit(run())


if __name__ == "__main__":
    main()
