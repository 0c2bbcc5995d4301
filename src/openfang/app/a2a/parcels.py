"""What travels with a message: what is small in the call, what is large kept beside it (C7.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from openfang.agents.attached import BLOB
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.values import dataclass
from openfang.storage.state import Statement, put_blob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import TaskMessage

Room: TypeAlias = Callable[[str, str, int], Sequence[Statement]]
"""Makes room for what a caller keeps: given the last of it, whose it is, and its bytes."""
_SMALL: Final = 16_384
_KEPT_NS: Final = 86_400_000_000_000
_PLAIN: Final = frozenset({"type", "text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A message as the arguments of a call, and the statements that keep what is too large."""

    arguments: Mapping[str, Any]
    statements: Sequence[Statement] = ()


def pack(
    message: TaskMessage, metadata: Mapping[str, Any], caller: str, now: int, room: Room
) -> Parcel:
    """Make the arguments for an agent out of a message."""
    told = {**metadata, **message.metadata}
    arguments: dict[str, Any] = {"message": message.text}
    if told:
        arguments["metadata"] = told
    if all(part.keys() <= _PLAIN for part in message.parts):
        return Parcel(arguments=arguments)
    parts, statements = put_aside(message.parts, caller, now, room)
    return Parcel(arguments={**arguments, "parts": parts}, statements=statements)


def put_aside(
    parts: Iterable[Part], caller: str, now: int, room: Room
) -> tuple[list[Part], list[Statement]]:
    """Give parts as they go into a call, and the statements that keep what is large of them."""
    large = dict[str, bytes]()
    kept = [_kept(part, large) for part in parts]
    statements = [
        put_blob(blob, caller, body, Labels.USER_INPUT, now + _KEPT_NS)
        for blob, body in large.items()
    ]
    if large:
        statements += room(max(large), caller, sum(map(len, large.values())))
    return kept, statements


def _kept(part: Part, large: dict[str, bytes]) -> Part:
    """The part as it goes into the call; what is large of it is put aside."""
    if "data" not in part:
        return part
    body = orjson.dumps(part["data"])
    if len(body) <= _SMALL:
        return part
    blob = new_id("result")  # named as all that is kept for a caller: the oldest of it goes first
    large[blob] = body
    rest = {name: value for name, value in part.items() if name != "data"}
    return {**rest, BLOB: blob}
