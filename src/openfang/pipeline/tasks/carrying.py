"""Words of an answer, carried from the node that writes it to those where somebody watches.

They are told and not kept, as here. Who misses some asks for all of them again; who misses the last
ones gets the answer.
"""

from __future__ import annotations

import json
import time
from dataclasses import field
from typing import TYPE_CHECKING, Final

from openfang.core.tasks import Spoken, TaskUpdate
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openfang.pipeline.tasks.rooms import Room, Rooms
    from openfang.storage.ports import Storage

WATCHED: Final = "watched"
WORDS: Final = "words"
_AGAIN: Final = 10.0
"""After so many seconds whoever still watches says so again; who misses something, sooner."""
_SOON: Final = 1.0
_KEPT: Final = 30.0
_MOST_WATCHED: Final = 1_000
_PIECE: Final = 1_000
_MOST: Final = 100_000
"""An answer that is longer by then is carried as a whole, in the end."""


@dataclass(slots=True)
class Carrying:
    """Says which tasks are watched here, and tells what is said in those that others watch."""

    storage: Storage
    rooms: Rooms
    now: Callable[[], int]
    _watched: dict[str, float] = field(init=False, default_factory=dict[str, float])

    def listen(self) -> None:
        """Hear who watches, and what is said elsewhere."""
        self.storage.on(WATCHED, self._hear_watcher)
        self.storage.on(WORDS, self._hear_words)

    def want(self, room: Room, after: float = _AGAIN) -> None:
        """Say that somebody here watches a task of another node, and how much they have of it.

        Who has said so a moment ago need not.
        """
        if room.said_at + after < (now := time.monotonic()):
            room.said_at = now
            self.storage.tell(WATCHED, f"{room.id} {len(room.words)}")

    def spoken(self, room: Room, spoken: Spoken) -> None:
        """Carry what is said here, if anybody else watches."""
        if room.id not in self._watched or room.speech is None:
            return
        if self._watched[room.id] < time.monotonic():
            del self._watched[room.id]
        elif len(so_far := room.speech.so_far) <= _MOST:
            self._tell(room.id, len(so_far) - len(spoken.text), spoken.text)

    def _tell(self, task_id: str, place: int, text: str) -> None:
        for begins, piece in _pieces(text):
            self.storage.tell(WORDS, json.dumps([task_id, place + begins, piece]))

    def _hear_watcher(self, subject: str) -> None:
        """Somebody watches; who has not all that was said so far is told it.

        Nobody may be at work on the task yet: whoever begins tells them from the beginning.
        """
        task_id, _, have = subject.partition(" ")
        if not task_id:
            return
        self._remember(task_id)
        room = self.rooms.find(task_id)
        so_far = room.speech.so_far if room and room.speech else ""
        if so_far and have != str(len(so_far)) and len(so_far) <= _MOST:
            self._tell(task_id, 0, so_far)

    def _remember(self, task_id: str) -> None:
        now = time.monotonic()
        if len(self._watched) >= _MOST_WATCHED:
            self._watched = {task: until for task, until in self._watched.items() if until > now}
        self._watched[task_id] = now + _KEPT

    def forget(self, task_id: str) -> None:
        """Nothing more is said in a task."""
        self._watched.pop(task_id, None)

    def _hear_words(self, subject: str) -> None:
        if not subject:
            return
        task_id, place, text = json.loads(subject)
        room = self.rooms.find(task_id)
        if room is None or room.task is not None or room.seen is None:
            return
        if not place:
            if room.words.startswith(text):
                return  # it is told again for somebody else
            if room.words and text.startswith(room.words):
                place, text = len(room.words), text[len(room.words) :]
        if place not in {0, len(room.words)}:
            self.want(room, _SOON)  # some are missing
            return
        room.words = text if place == 0 else room.words + text
        spoken = Spoken(text=text, first=place == 0)
        room.tell(TaskUpdate(task=room.seen, what=spoken, at=self.now()))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    return ((begins, text[begins : begins + _PIECE]) for begins in range(0, len(text), _PIECE))
