"""What an agent says while it is at work, told to whoever watches: once per turn of the loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from openfang.core.agents import Wanted, Words
from openfang.core.tasks import Spoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.progress import Told

MOST_SPOKEN: Final = 1_000_000
"""Characters that are told on the way; the answer has them all."""


class Speech:
    """Listens to a call. What was said before a call of the agent's is no part of its answer."""

    __slots__ = ("_fresh", "_gathered", "_said", "_size", "_tell")

    def __init__(self, tell: Callable[[Spoken], None]) -> None:
        self._tell = tell
        self._said: list[str] = []
        self._gathered: list[str] = []
        self._size = 0
        self._fresh = True

    @property
    def so_far(self) -> str:
        """All that was said of the answer, and told."""
        return "".join(self._said)

    def __call__(self, told: Told) -> None:
        """Hear one thing."""
        match told:
            case Words(text):
                self._hear(text)
            case Wanted():
                self.flush()
                self._fresh = True
            case _:
                pass

    def _hear(self, text: str) -> None:
        self._size += len(text)
        if not text or self._size > MOST_SPOKEN:
            return
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self.flush)
        self._gathered.append(text)

    def flush(self) -> None:
        """Tell what has been gathered."""
        if not self._gathered:
            return
        text = "".join(self._gathered)
        self._gathered.clear()
        first, self._fresh = self._fresh, False
        if first:
            self._said.clear()
        self._said.append(text)
        self._tell(Spoken(text=text, first=first))
