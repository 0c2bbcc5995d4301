"""What is told of a call on its way: free of secrets, and no more than anybody can read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from openfang.core.agents import Ended, Made, Wanted, Words
from openfang.core.progress import Progress
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.ports import Clock
    from openfang.core.progress import Listener, Told

_BURST = 100.0
_PER_SECOND = 20.0
_LONGEST = 500
_LONGEST_WORD = 4096


@dataclass(slots=True)
class Passing:
    """Hands on what a source tells of one call; of a flood of progress, what the rate lets through.

    A word is held back until it has ended: half of a secret looks like none.
    """

    listener: Listener
    redact: Callable[[str], str]
    clock: Clock
    _left: float = _BURST
    _last: float = 0.0
    _word: str = ""

    def __call__(self, told: Told) -> None:
        """Hand it on."""
        match told:
            case Progress():
                self._progress(told)
            case Words(text):
                self._words(text)
            case Wanted(wish):
                self._flush()
                self.listener(Wanted(replace(wish, arguments=self._clean(wish.arguments))))
            case Made(text=text):
                self.listener(replace(told, text=self.redact(text)))
            case Ended(answer=answer):
                self._flush()
                self.listener(replace(told, answer=self.redact(answer)))

    def _clean(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        text = orjson.dumps(arguments).decode()
        clean = self.redact(text)
        return arguments if clean == text else orjson.loads(clean)

    def _progress(self, progress: Progress) -> None:
        now = self.clock.monotonic()
        self._left = min(_BURST, self._left + (now - self._last) * _PER_SECOND)
        self._last = now
        if self._left >= 1:
            self._left -= 1
            self.listener(replace(progress, message=self.redact(progress.message[:_LONGEST])))

    def _words(self, text: str) -> None:
        text = self._word + text
        end = max(text.rfind(" "), text.rfind("\n")) + 1
        if len(text) - end > _LONGEST_WORD:
            end = len(text)
        self._word = text[end:]
        if end:
            self.listener(Words(self.redact(text[:end])))

    def _flush(self) -> None:
        word, self._word = self._word, ""
        if word:
            self.listener(Words(self.redact(word)))
