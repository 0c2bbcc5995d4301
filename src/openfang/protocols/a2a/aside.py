"""Data and metadata, laid aside while a library reads or writes what they stand in. No I/O here.

A library makes an object of its own of each value in them, and a message may have a million; and
it knows one kind of number only.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Any, Final, TypeGuard, cast

import orjson

Json = dict[str, Any]

_MESSAGES: Final = ("message", "request")
_WRAPPED: Final = "data_part_compat"
"""Where a library of 0.3 finds this in metadata, the data is what `value` holds: no object."""
_DONE: Final = frozenset({"metadata", "parts", "content", "error"})
"""Where an answer is not looked into any further; an error has nothing of an agent's in it."""


class Aside:
    """What was laid aside of one request, or of its answer; a mark stands where it was."""

    __slots__ = ("_kept", "_mark")

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._mark = token_hex(8)

    def request(self, params: object) -> Any:  # noqa: ANN401 - any JSON
        """Take it out of what sends a message, in the JSON of any version."""
        if not isinstance(params, dict):
            return params
        lean = self._without(cast("Json", params))
        for name in _MESSAGES:
            if isinstance(lean.get(name), dict):
                lean[name] = self._message(lean[name])
        return lean

    def answer(self, said: Json) -> Json:
        """Take it out of what is answered, in the JSON of any version."""
        return {
            name: member if name in _DONE else self._inside(member)
            for name, member in self._message(said).items()
        }

    def _inside(self, member: Any) -> Any:  # noqa: ANN401 - any JSON
        if _is_object(member):
            return self.answer(member)
        if isinstance(member, list):
            members = cast("list[Any]", member)
            return [self.answer(one) if _is_object(one) else one for one in members]
        return member

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
        """Leave to the library what it looks for in data: 0.3 wraps them, over HTTP twice."""
        match value:
            case {"value": inner} if len(cast("Json", value)) == 1:
                return {"value": self._marked(inner)}
            case {"data": inner} if len(cast("Json", value)) == 1:
                return {"data": self._data(inner)}
            case _:
                return self._marked(value)

    def _without(self, held: Json) -> Json:
        metadata = held.get("metadata")
        return {**held, "metadata": self._beside(metadata)} if metadata else dict(held)

    def _beside(self, metadata: Any) -> Any:  # noqa: ANN401 - any JSON
        if not _is_object(metadata):
            return metadata
        if _WRAPPED not in metadata:
            return self._marked(metadata)
        others = {**metadata}
        wrapped = {_WRAPPED: others.pop(_WRAPPED)}
        return {**self._marked(others), **wrapped}

    def _marked(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if not _is_kept(value):
            return value
        self._kept.append(value)
        at = len(self._kept) - 1
        return {self._mark: at} if isinstance(value, dict) else [self._mark, at]

    def filled(self, text: bytes) -> bytes:
        """Put it back into JSON that was written."""
        return orjson.dumps(self.whole(orjson.loads(text))) if self._kept else text

    def whole(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Put it back into what was read."""
        if isinstance(value, dict):
            members = cast("Json", value)
            if self._mark not in members:
                return {name: self.whole(member) for name, member in members.items()}
            more = {name: member for name, member in members.items() if name != self._mark}
            return {**self._kept[int(members[self._mark])], **more}
        if isinstance(value, list):
            members = cast("list[Any]", value)
            marked = len(members) == 2 and members[0] == self._mark  # noqa: PLR2004 - a mark and its number
            return self._kept[int(members[1])] if marked else [self.whole(one) for one in members]
        return value


def _is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def _is_kept(value: object) -> bool:
    """Whether a library would make something else of it."""
    if isinstance(value, dict | list):
        return bool(cast("object", value))
    return isinstance(value, int | float) and not isinstance(value, bool)
