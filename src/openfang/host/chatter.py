"""What a child says on its standard error: lines for a person, cut, and only so many a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE: Final = 4096
LINES_A_SECOND: Final = 200


class Chatter:
    """Feed it bytes; it says lines. What is too much is left out, and counted."""

    def __init__(
        self, say: Callable[[str], None], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._now = now
        self._line = bytearray()
        self._cut = 0
        self._since = 0.0
        self._said = 0
        self.left_out = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._keep(part)
            self.end_line()
        self._keep(rest)

    def end_line(self) -> None:
        """Say what was heard of a line, if anything was."""
        text = self._line.decode(errors="replace").rstrip()
        if self._cut:
            text += f" [and {self._cut} bytes more]"
        self._line.clear()
        self._cut = 0
        if text:
            self._offer(text)

    def _keep(self, part: bytes) -> None:
        room = LONGEST_LINE - len(self._line)
        self._line += part[:room]
        self._cut += max(0, len(part) - room)

    def _offer(self, text: str) -> None:
        now = self._now()
        if now - self._since >= 1:
            self._since, self._said = now, 0
        if self._said >= LINES_A_SECOND:
            self.left_out += 1
            return
        self._said += 1
        if self.left_out:
            self._say(f"[{self.left_out} lines left out]")
            self.left_out = 0
        self._say(text)
