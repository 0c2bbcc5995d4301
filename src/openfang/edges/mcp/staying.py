"""What is open for a caller, and ends with its key: requests that are answered, and streams.

Of streams that stay there are not too many, and none stays longer than the node.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from openfang.edges.api.staying import Streams, in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

    from openfang.edges.api.mount import Came


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


class _Attended(Stay):
    """One that is known for the length of a `with`."""

    __slots__ = ("_known",)

    def __init__(self, came: Came, end: Callable[[], object], known: dict[Stay, None]) -> None:
        super().__init__(came, end)
        self._known = known

    def __enter__(self) -> Stay:
        self._known[self] = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del self._known[self]


class Staying:
    """All of them."""

    def __init__(self, most: int) -> None:
        self._streams = Streams(most)
        self._open: dict[Stay, None] = {}
        self._asked: dict[Stay, None] = {}
        self._over = False

    def __len__(self) -> int:
        return len(self._streams)

    @contextmanager
    def stay(self, came: Came, end: Callable[[], object]) -> Generator[Stay]:
        """Let a stream stay; `end` is called when it is to end."""
        stay = Stay(came, end)
        with self._streams.one(came.caller.id):
            self._open[stay] = None
            try:
                if self._over:
                    stay.end()
                yield stay
            finally:
                del self._open[stay]

    def attend(self, came: Came, end: Callable[[], object]) -> _Attended:
        """Let a request be answered; `end` is called when its key ends before."""
        return _Attended(came, end, self._asked)

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
        self.send_away()

    def send_away(self) -> None:
        """End those that are open now: whoever comes back is let in where it comes to."""
        for stay in list(self._open):
            stay.end()
