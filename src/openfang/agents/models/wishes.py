"""What a model wants called, as wishes: whatever it wrote in the place of arguments. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.agents.models.characters import sound
from openfang.core.agents import Wish
from openfang.core.ids import new_id
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openfang.core.agents import Prompt

MOST: Final = 128
_LONGEST_ID: Final = 64
_LONGEST_NAME: Final = 256
_LONGEST_UNREAD: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A call as the model wrote it."""

    tool: str
    arguments: object = None
    id: str = ""


def wishes(heard: Iterable[Heard], prompt: Prompt) -> Iterator[Wish]:
    """Make wishes of what was heard. Each has an id that no other in the conversation has."""
    known = {wish.id for message in prompt.messages for wish in message.wishes}
    calls = list(heard)
    if len(calls) > MOST:
        raise ValueError(f"wants {len(calls)} calls at once; {MOST} are made at most")
    for call in calls:
        wish = _wish(call, known)
        known.add(wish.id)
        yield wish


def _wish(call: Heard, known: set[str]) -> Wish:
    fits = 0 < len(call.id) <= _LONGEST_ID and call.id.isprintable()
    number = call.id if fits and call.id not in known else new_id("wish")
    tool = sound(call.tool[:_LONGEST_NAME])
    arguments = read(call.arguments)
    if arguments is None or not _fits(arguments):
        unread = sound(str(call.arguments)[:_LONGEST_UNREAD]) or "(nothing)"
        return Wish(id=number, tool=tool, unread=unread)
    return Wish(id=number, tool=tool, arguments=arguments)


def _fits(arguments: Mapping[str, Any]) -> bool:
    """Whether they can be written down: integers of 64 bits, and whole characters."""
    try:
        orjson.dumps(arguments)
    except TypeError:
        return False
    return True


def read(arguments: object) -> Mapping[str, Any] | None:
    """Read arguments; none at all are an empty object, and what is no object is None."""
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return None
        if isinstance(arguments, str):  # some write the JSON of the JSON
            return read(arguments) if arguments else {}
    return cast("Mapping[str, Any]", arguments) if isinstance(arguments, Mapping) else None
