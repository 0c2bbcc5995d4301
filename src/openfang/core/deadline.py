"""A deadline for the task that enters it: what `asyncio.timeout` does, at half its cost."""

from __future__ import annotations

import asyncio
import math
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

_TICK = 0.001


class Deadline:
    """Cancels what runs too long; `expired` tells our cancellation from everybody else's."""

    __slots__ = ("_cancelling", "_handle", "_held", "_seconds", "_since", "_task", "expired")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._held = 0
        self.expired = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._task = task
        self._cancelling = task.cancelling()
        seconds, self._since = self._seconds, loop.time()
        self._handle = None if math.isinf(seconds) else loop.call_later(seconds, self._expire)

    def again(self) -> None:
        """Begin to count anew: there was a sign of life."""
        if self._handle is not None and not self.expired:
            self._since = self._task.get_loop().time()

    @contextmanager
    def held(self) -> Generator[None]:
        """Let time pass uncounted: somebody is being asked, and may take it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.again()

    def _expire(self) -> None:
        left = self._since + self._seconds - self._task.get_loop().time()
        if self._held:
            left = self._seconds
        if left > _TICK:
            self._handle = self._task.get_loop().call_later(left, self._expire)
            return
        self.expired = True
        self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self.expired:
            ours = self._task.uncancel() <= self._cancelling
            if ours and kind is asyncio.CancelledError:
                raise TimeoutError from error


class Pause:
    """Stops the time of a call that waits for another one, and of those that wait for it in turn.

    `waited` is for how long it stood still since the call began.
    """

    __slots__ = ("_above", "_deadline", "_held", "_since", "_waited")

    def __init__(self, deadline: Deadline, above: Pause | None) -> None:
        self._deadline = deadline
        self._above = above
        self._held = 0
        self._since = self._waited = 0.0

    @property
    def waited(self) -> float:
        """Seconds that do not count."""
        return self._waited + (_now() - self._since if self._held else 0.0)

    @contextmanager
    def held(self) -> Generator[None]:
        """Let time pass uncounted; what waits side by side waits once."""
        with ExitStack() as stack:
            if self._above is not None:
                stack.enter_context(self._above.held())
            stack.enter_context(self._deadline.held())
            self._begin()
            stack.callback(self._end)
            yield

    def _begin(self) -> None:
        if not self._held:
            self._since = _now()
        self._held += 1

    def _end(self) -> None:
        self._held -= 1
        if not self._held:
            self._waited += _now() - self._since


def _now() -> float:
    return asyncio.get_running_loop().time()
