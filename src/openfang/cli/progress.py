"""How far something has got, in one line of the terminal that is gone when it ends."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from shutil import get_terminal_size
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final

from openfang.cli.output import is_terminal, one_line, paint
from openfang.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from openfang.core.progress import Listener, Told

_ERASE: Final = "\r\x1b[K"
_PATIENCE: Final = 1.0


@contextmanager
def shown_progress() -> Generator[Listener | None]:
    """Show a person what the tool tells; a pipe is told nothing."""
    if not is_terminal(sys.stderr):
        yield None
        return
    shown = False

    def told(one: Told) -> None:
        nonlocal shown
        if not isinstance(one, Progress):
            return
        shown = True
        line = words(one)[: get_terminal_size().columns - 1]
        sys.stderr.write(_ERASE + paint(line, "dim", sys.stderr))
        sys.stderr.flush()

    try:
        yield told
    finally:
        if shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def words(progress: Progress) -> str:
    """Say it: `3 of 10: reading`, or what there is of that."""
    count = f"{progress.progress:g}"
    if progress.total is not None:
        count += f" of {progress.total:g}"
    return f"{count}: {one_line(progress.message)}" if progress.message else count


@contextmanager
def shown_bar(text: str, total: int | None = None) -> Generator[Callable[[], None]]:
    """Show a person a bar once something takes longer than a second; gives what counts one more."""
    bar = _Bar(text, total)
    later = Timer(_PATIENCE, bar.show)
    later.daemon = True
    if is_terminal(sys.stderr):
        later.start()
    try:
        yield bar.count
    finally:
        later.cancel()
        bar.hide()


class _Bar:
    """A bar that is drawn by a thread of its own, if at all, and leaves nothing behind."""

    def __init__(self, text: str, total: int | None) -> None:
        self._text, self._total = text, total
        self._done = 0
        self._drawn: tuple[Bars, TaskID] | None = None
        self._over = False
        self._lock = Lock()

    def count(self) -> None:
        with self._lock:
            self._done += 1
            if self._drawn:
                self._drawn[0].update(self._drawn[1], completed=self._done)

    def show(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - 0.1 s that who is quick need not pay
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - as above
        from rich.progress import Progress as Bars  # noqa: PLC0415 - as above

        with self._lock:
            if self._over:
                return
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            bars = Bars(*columns, console=Console(stderr=True), transient=True)
            task = bars.add_task(self._text, total=self._total, completed=self._done)
            self._drawn = bars, task
            bars.start()

    def hide(self) -> None:
        with self._lock:
            self._over = True
            if self._drawn:
                self._drawn[0].stop()
