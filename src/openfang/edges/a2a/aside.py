"""Data and metadata of our tasks, laid aside while the library reads or writes them. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from openfang.core.tasks import Task, TaskArtifact, TaskMessage
from openfang.edges.a2a.telling import Changed, Told
from openfang.protocols.a2a.aside import Aside as Laid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import Sent
    from openfang.edges.a2a.telling import Event

S = TypeVar("S", TaskMessage, TaskArtifact)


class Aside(Laid):
    """What was laid aside of one request, or of its answer."""

    __slots__ = ()

    def sent(self, sent: Sent) -> Sent:
        """Put it back into a message that was read."""
        if not self._kept:
            return sent
        said = sent.message
        parts = tuple([cast("Part", self.whole(part)) for part in said.parts])
        message = replace(said, parts=parts, metadata=self.whole(said.metadata))
        return replace(sent, message=message, metadata=self.whole(sent.metadata))

    def task(self, task: Task) -> Task:
        """Take it out of a task that is to be written."""
        return replace(
            task,
            history=tuple([self._lean(said) for said in task.history]),
            status=None if task.status is None else self._lean(task.status),
            artifacts=tuple([self._lean(made) for made in task.artifacts]),
            metadata=self._held(task.metadata),
        )

    def event(self, event: Event) -> Event:
        """Take it out of an event of a stream."""
        match event:
            case Task():
                return self.task(event)
            case Told():
                return replace(event, artifact=self._lean(event.artifact))
            case Changed(task=task):
                said = None if task.status is None else self._lean(task.status)
                return replace(event, task=replace(task, status=said))

    def _lean(self, held: S) -> S:
        parts = tuple([self._written(part) for part in held.parts])
        return replace(held, parts=parts, metadata=self._held(held.metadata))

    def _written(self, part: Part) -> Part:
        if part.get("type") == "text" and "metadata" not in part:
            return part
        return {name: self._marked(value) for name, value in part.items()}

    def _held(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._marked(dict(metadata))
