"""What is open for a caller, and ends with its key: requests that are answered, and streams.

Of streams that stay there are not too many, and none stays longer than the node.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from openfang.core.errors import GuardTripped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from openfang.edges.api.mount import Came

Still: TypeAlias = "Callable[[], bool]"
_A_SHARE = 2
_OF_ISSUER = "oauth:"


def always() -> bool:
    """Say that a caller is in force whatever comes."""
    return True


def still_of(came: Came) -> Still:
    """What says whether that which a caller began may go on.

    An access token ends soon, by itself, and another takes its place: nobody has turned it away.
    """
    return always if came.caller.id.startswith(_OF_ISSUER) else came.still


def in_force(came: Came) -> bool:
    """Whether what this caller began may go on."""
    return still_of(came)()


class Stay:
    """One of them, and whether it was told to end."""

    __slots__ = ("_end", "came", "ended")

    def __init__(self, came: Came, end: Callable[[], object]) -> None:
        self.came = came
        self.ended = False
        self._end = end

    def end(self) -> None:
        """Tell it to end."""
        if not self.ended:
            self.ended = True
            self._end()


class Staying:
    """All of them. Of the streams one caller may have a half."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[Stay, None] = {}
        self._of = Counter[str]()
        self._asked: dict[Stay, None] = {}
        self._over = False

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def stay(self, came: Came, end: Callable[[], object]) -> Generator[Stay]:
        """Let a stream stay; `end` is called when it is to end."""
        caller = came.caller.id
        if len(self._open) >= self._most or self._of[caller] >= max(1, self._most // _A_SHARE):
            raise _too_many(caller, self._of[caller])
        stay = Stay(came, end)
        self._open[stay] = None
        self._of[caller] += 1
        try:
            if self._over:
                stay.end()
            yield stay
        finally:
            del self._open[stay]
            self._of[caller] -= 1
            self._of += Counter()  # whoever has none open is forgotten

    @contextmanager
    def attend(self, came: Came, end: Callable[[], object]) -> Generator[Stay]:
        """Let a request be answered; `end` is called when its key ends before."""
        stay = Stay(came, end)
        self._asked[stay] = None
        try:
            yield stay
        finally:
            del self._asked[stay]

    def dismiss(self) -> bool:
        """End what whoever would not be let in again has open; say whether there was any."""
        over = [stay for stay in self._open if not stay.came.still()]
        over += [stay for stay in self._asked if not in_force(stay.came)]
        for stay in over:
            stay.end()
        return bool(over)

    def end(self) -> None:
        """End all of them, and from now on each that comes."""
        self._over = True
        for stay in list(self._open):
            stay.end()


def _too_many(caller: str, streams: int) -> GuardTripped:
    return GuardTripped(
        f"{caller} listens {streams} times; no more may listen now.",
        rule="too_many_streams",
        way_out="end a stream first",
    )
