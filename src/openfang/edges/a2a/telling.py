"""A task told while it goes on: the events of a stream, in the order in which things happened.

An agent's words are pieces of the artifact that its answer will be; what comes with a change of
state is told before the change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from openfang.core.results import text_part
from openfang.core.tasks import RESPONSE, Moved, Spoken, Task, TaskArtifact
from openfang.core.values import dataclass
from openfang.edges.a2a.views import answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.core.tasks import TaskUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something that came out of a task, or a piece of it; to be put to the one before or not."""

    task: Task
    artifact: TaskArtifact
    append: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The task is in another state."""

    task: Task


Event: TypeAlias = Task | Told | Changed


class Telling:
    """What one listener has been told of an answer so far."""

    __slots__ = ("_said",)

    def __init__(self) -> None:
        self._said: list[str] = []

    def events(self, update: TaskUpdate) -> Iterator[Event]:
        """Tell one more thing that happened."""
        match update.what:
            case Spoken():
                yield self._piece(update.task, update.what)
            case Moved():
                yield from self._results(update.task, update.what)
                yield Changed(task=update.task)

    def _piece(self, task: Task, spoken: Spoken) -> Told:
        if spoken.first:
            self._said.clear()
        self._said.append(spoken.text)
        return Told(task=task, artifact=_words(spoken.text), append=not spoken.first)

    def _results(self, task: Task, moved: Moved) -> Iterator[Told]:
        answer = answer_of(task)
        if answer is not None:
            yield self._whole(task, answer)
        for made in moved.artifacts:
            yield Told(task=task, artifact=made, last=True)

    def _whole(self, task: Task, answer: TaskArtifact) -> Told:
        """Tell what is missing of an answer; one that is not as it was begun, from the start."""
        text, said = _text(answer), "".join(self._said)
        if not said or not text.startswith(said):
            return Told(task=task, artifact=answer, last=True)
        rest = replace(answer, parts=({**answer.parts[0], "text": text[len(said) :]},))
        return Told(task=task, artifact=rest, append=True, last=True)


def _words(text: str) -> TaskArtifact:
    return TaskArtifact(id=RESPONSE, name=RESPONSE, parts=(text_part(text),))


def _text(made: TaskArtifact) -> str:
    """The text of an artifact that is nothing but one."""
    match made.parts:
        case ({"type": "text", "text": str(text)},):
            return text
        case _:
            return ""
