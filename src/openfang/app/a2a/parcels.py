"""What travels with a message: what is small in the call, what is large kept beside it (C7.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.agents.attached import BLOB
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.storage.state import MOST_KEPT, drop_oldest_blobs, put_blob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.results import Part
    from openfang.core.tasks import TaskMessage
    from openfang.storage.state import Statement

_SMALL: Final = 16_384
_KEPT_NS: Final = 86_400_000_000_000
_PLAIN: Final = frozenset({"type", "text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A message as the arguments of a call, and the statements that keep what is too large."""

    arguments: Mapping[str, Any]
    statements: Sequence[Statement] = ()


def pack(message: TaskMessage, metadata: Mapping[str, Any], caller: str, now: int) -> Parcel:
    """Make the arguments for an agent out of a message."""
    told = {**metadata, **message.metadata}
    arguments: dict[str, Any] = {"message": message.text}
    if told:
        arguments["metadata"] = told
    if all(part.keys() <= _PLAIN for part in message.parts):
        return Parcel(arguments=arguments)
    parts, statements = list["Part"](), list["Statement"]()
    for part in message.parts:
        kept, more = _kept(part, caller, now)
        parts.append(kept)
        statements += more
    return Parcel(arguments={**arguments, "parts": parts}, statements=statements)


def _kept(part: Part, caller: str, now: int) -> tuple[Part, Sequence[Statement]]:
    if "data" not in part:
        return part, ()
    body = orjson.dumps(part["data"])
    if len(body) <= _SMALL:
        return part, ()
    blob = new_id("part")
    rest = {name: value for name, value in part.items() if name != "data"}
    put = put_blob(blob, caller, body, Labels.USER_INPUT, now + _KEPT_NS)
    return {**rest, BLOB: blob}, (put, drop_oldest_blobs(blob, caller, MOST_KEPT))
