"""What a child says on its standard error: lines for a person, cut, and only so many a second."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE: Final = 4096
LINES_A_SECOND: Final = 200
_HEARD_A_SECOND: Final = 10 * LINES_A_SECOND
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")


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
        self._heard = 0
        self.left_out = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Of a flood only the line ends are counted, which is fast."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if self._silent():
                self._skip(data[start:])
                return
            self._heard += 1
            self._keep(data[start:end])
            self.end_line()
            start = end + 1
        self._keep(data[start:])

    def end_line(self) -> None:
        """Say what was heard of a line, if anything was."""
        text = legible(self._line.decode(errors="replace"))
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

    def _skip(self, data: bytes) -> None:
        """Leave out every line that ends here, and hear the beginning of the next one."""
        skipped, _, rest = data.rpartition(b"\n")
        self.left_out += skipped.count(b"\n") + 1
        self._line.clear()
        self._cut = 0
        self._keep(rest)

    def _silent(self) -> bool:
        """Whether enough was said in this second, or enough of what says nothing."""
        now = self._now()
        if now - self._since >= 1:
            self._since, self._said, self._heard = now, 0, 0
        return self._said >= LINES_A_SECOND or self._heard >= _HEARD_A_SECOND

    def _offer(self, text: str) -> None:
        if self._silent():
            self.left_out += 1
            return
        self._said += 1
        if self.left_out:
            self._say(f"[{self.left_out} lines left out]")
            self.left_out = 0
        self._say(text)


def legible(text: str) -> str:
    """Write text so that it can do nothing to a terminal: no colours, no control characters."""
    if not text.isprintable():
        text = _COLOURS.sub("", text).replace("\t", "    ")
        text = "".join(one if one.isprintable() else "\ufffd" for one in text.rstrip())
    return text.rstrip()
