"""Data and metadata, laid aside while a library reads or writes what they stand in. No I/O here.

A library makes an object of its own of each value in them, and a message may have a million; and
it knows one kind of number only.
"""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar, cast

import orjson

from openfang.core.tasks import Task, TaskArtifact, TaskMessage
from openfang.edges.a2a.telling import Changed, Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import Sent
    from openfang.edges.a2a.telling import Event

Json = dict[str, Any]
S = TypeVar("S", TaskMessage, TaskArtifact)

_MESSAGES: Final = ("message", "request")
_WRAPPED: Final = "data_part_compat"
"""Where a library of 0.3 finds this in metadata, the data is what `value` holds: no object."""


class Aside:
    """What was laid aside of one request, or of its answer; a mark stands where it was."""

    __slots__ = ("_kept", "_mark")

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._mark = token_hex(8)

    def request(self, params: object) -> object:
        """Take it out of what sends a message, in the JSON of any version."""
        if not isinstance(params, dict):
            return params
        lean = self._without(cast("Json", params))
        for name in _MESSAGES:
            if isinstance(lean.get(name), dict):
                lean[name] = self._message(lean[name])
        return lean

    def _message(self, message: Json) -> Json:
        lean = self._without(message)
        for name, take in (("parts", self._part), ("content", self._deeper)):
            if isinstance(lean.get(name), list):
                parts = cast("list[Any]", lean[name])
                lean[name] = [take(one) if _is_object(one) else one for one in parts]
        return lean

    def _part(self, part: Json) -> Json:
        lean = self._without(part)
        if "data" in lean:
            lean["data"] = self._data(lean["data"])
        return lean

    def _deeper(self, part: Json) -> Json:
        """One of 0.3 over HTTP, whose data is one level further down."""
        lean = self._without(part)
        if isinstance(lean.get("data"), dict):
            lean["data"] = self._part(cast("Json", lean["data"]))
        return lean

    def _data(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, dict) and list(cast("Json", value)) == ["value"]:
            return {"value": self._marked(value["value"])}
        return self._marked(value)

    def _without(self, held: Json) -> Json:
        metadata = held.get("metadata")
        return {**held, "metadata": self._beside(metadata)} if metadata else dict(held)

    def _beside(self, metadata: Any) -> Any:  # noqa: ANN401 - any JSON
        if not isinstance(metadata, dict) or _WRAPPED not in metadata:
            return self._marked(metadata)
        others = {**cast("Json", metadata)}
        wrapped = {_WRAPPED: others.pop(_WRAPPED)}
        return {**self._marked(others), **wrapped}

    def _marked(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if not value or not isinstance(value, dict | list):
            return value
        self._kept.append(value)
        at = len(self._kept) - 1
        return {self._mark: at} if isinstance(value, dict) else [self._mark, at]

    def sent(self, sent: Sent) -> Sent:
        """Put it back into a message that was read."""
        said = sent.message
        parts = tuple([cast("Part", self._whole(part)) for part in said.parts])
        message = replace(said, parts=parts, metadata=self._whole(said.metadata))
        return replace(sent, message=message, metadata=self._whole(sent.metadata))

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

    def filled(self, text: bytes) -> bytes:
        """Put it back into JSON that was written."""
        return orjson.dumps(self._whole(orjson.loads(text))) if self._kept else text

    def _whole(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, dict):
            members = cast("Json", value)
            if self._mark not in members:
                return {name: self._whole(member) for name, member in members.items()}
            more = {name: member for name, member in members.items() if name != self._mark}
            return {**self._kept[int(members[self._mark])], **more}
        if isinstance(value, list):
            members = cast("list[Any]", value)
            marked = len(members) == 2 and members[0] == self._mark  # noqa: PLR2004 - a mark and its number
            return self._kept[int(members[1])] if marked else [self._whole(one) for one in members]
        return value


def _is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)
