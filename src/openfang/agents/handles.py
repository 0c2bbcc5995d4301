"""Results from outside as handles: the model reads one only if it asks to, and may hand it on.

What it hands on goes with its own labels; what it reads joins the run. A handle stands for the text
of a result, and is of use to who began the chain alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.ids import Kind, tool_id
from openfang.core.labels import Labels
from openfang.core.tools import Risk, Tool, Trust

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openfang.core.results import Result

_HANDLE: Final = re.compile(r"\Aresult_[0-9a-f]{32}\Z")
_OPENING: Final = '{"handle": "'
_LONGEST_NAME: Final = 80
NAME: Final = "reveal"
REVEAL: Final = Tool(
    id=tool_id(Kind.BUILTIN, NAME),
    kind=Kind.BUILTIN,
    source="builtin",
    name=NAME,
    wire_name=NAME,
    description=(
        "Read a result that you have as a handle. Pass the handle itself as an argument where a "
        "tool only needs the text: do not read what you need not."
    ),
    input_schema={
        "type": "object",
        "properties": {"handle": {"type": "string", "description": "The handle, as it was given."}},
        "required": ["handle"],
        "additionalProperties": False,
    },
    risk=Risk.LOW,
    tags=frozenset(),
    trust=Trust.HIGH,
)


def written(handle: str, tool: str, result: Result) -> str:
    """What the model is told in the place of a result."""
    told = {
        "handle": handle,
        "from": tool[:_LONGEST_NAME],
        "size": len(result.text),
        "labels": result.labels.names,
    }
    return json.dumps(told)


def is_written(text: str) -> bool:
    """Whether a text is what a model is told in the place of a result."""
    return text.startswith(_OPENING)


async def filled(
    arguments: Mapping[str, Any], find: Callable[[str], Awaitable[tuple[str, Labels] | None]]
) -> tuple[dict[str, Any], Labels]:
    """Put texts in the place of their handles, and join what those carry."""
    carried = Labels.NONE

    async def fill(value: object) -> object:
        nonlocal carried
        match value:
            case str() if _HANDLE.match(value) and (found := await find(value)) is not None:
                text, labels = found
                carried |= labels
                return text
            case list():
                return [await fill(one) for one in cast("list[object]", value)]
            case dict():
                members = cast("dict[str, object]", value)
                return {name: await fill(one) for name, one in members.items()}
            case _:
                return value

    return {name: await fill(value) for name, value in arguments.items()}, carried
