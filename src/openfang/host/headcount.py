"""How many processes a child is by now, with all that it has started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def headcount(pid: int, most: int = 10_000) -> int:
    """Count a process and its descendants, up to `most` of them; 0 when it is gone. Blocks."""
    waiting, number = [pid], 0
    while waiting and number < most:
        children = _children(waiting.pop())
        if children is not None:
            number += 1
            waiting.extend(children)
    return number


def _children(pid: int) -> list[int] | None:
    """Every thread has children of its own."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names only
    except OSError:
        return None
    return [child for thread in threads for child in _of_thread(pid, thread)]


def _of_thread(pid: int, thread: str) -> Iterator[int]:
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123 - short-lived
            return map(int, file.read().split())
    except OSError:
        return iter(())
