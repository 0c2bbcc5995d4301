"""How far a call has got, in one line of the terminal that is gone when the call ends."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final

from openfang.cli.output import is_terminal, one_line, paint
from openfang.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.core.progress import Listener, Told

_ERASE: Final = "\r\x1b[K"


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
