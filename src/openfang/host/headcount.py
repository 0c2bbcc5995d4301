"""How many processes a child is by now, with all that it has started, and what they hold."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def family(pid: int, most: int = 10_000) -> list[int]:
    """Find a process and its descendants, up to `most` of them; none when it is gone. Blocks."""
    waiting, found = [pid], list[int]()
    while waiting and len(found) < most:
        one = waiting.pop()
        children = _children(one)
        if children is not None:
            found.append(one)
            waiting.extend(children)
    return found


def headcount(pid: int, most: int = 10_000) -> int:
    """Count a process and its descendants, up to `most` of them; 0 when it is gone. Blocks."""
    return len(family(pid, most))


def weight(processes: Iterable[int]) -> int:
    """Say how many bytes these processes hold that are no file's. Blocks."""
    return sum(map(_held, processes))


def _held(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123 - short-lived
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * _PAGE


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
