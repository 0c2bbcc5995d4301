"""The planner as a model like any other: it wants one call, and then tells what came of it.

It says what it is. It does not reason over results; it hands them on.
"""

from __future__ import annotations

import re
from operator import is_
from typing import TYPE_CHECKING, Final

from openfang.agents.planner.offer import Offer
from openfang.agents.planner.plan import Abstained, Planned, Planner
from openfang.core.agents import Prompt, Speaker, Spent, Usage, Wanted, Wish, Words
from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from openfang.core.agents import Message, Said
    from openfang.core.tools import Tool

_DESTRUCTIVE_TAGS: Final = frozenset({"fs.delete", "database.delete", "cloud.resource_delete"})
_PIECES = re.compile(r"\S+\s*|\s+")
_SHOWN_TOOLS: Final = 8
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|evening|day)|thanks?|thank you)\b", re.IGNORECASE
)
_MYSELF: Final = (
    "I am the embedded planner: no language model, just a matcher of requests to tools. "
    "I can make one call for one plain request, and I make none that I am not sure of."
)


class PlannerModel:
    """Chooses a call by words and types; needs no key and no network."""

    name = "planner"

    async def answer(self, prompt: Prompt) -> AsyncGenerator[Said]:
        """Want one call, or say in words why not; after a call, tell its result."""
        results = _results(prompt.messages)
        if results:
            text = "\n\n".join(message.text for message in results) or "Done."
        else:
            match _planner(prompt.tools).plan(_request(prompt.messages)):
                case Planned(offer, arguments):
                    yield Wanted(Wish(id=new_id("wish"), tool=offer.name, arguments=arguments))
                    yield Spent(Usage(requests=1))
                    return
                case Abstained() as abstained:
                    text = _excuse(_request(prompt.messages), abstained, prompt.tools)
        for piece in _PIECES.findall(text):
            yield Words(piece)
        yield Spent(Usage(requests=1))


def _results(messages: Sequence[Message]) -> list[Message]:
    found: list[Message] = []
    for message in reversed(messages):
        if message.speaker is not Speaker.TOOL:
            break
        found.insert(0, message)
    return found


def _request(messages: Sequence[Message]) -> str:
    asked = (one.text for one in reversed(messages) if one.speaker is Speaker.USER)
    return next(asked, "")


def _offer(tool: Tool) -> Offer:
    marked = tool.annotations.get("destructiveHint") is True and bool(tool.effects)
    destructive = marked or bool(tool.tags & _DESTRUCTIVE_TAGS)
    return Offer(tool.wire_name, tool.description, tool.input_schema, destructive)


class _Known:
    """Keeps the last planner: the same tools are offered again and again."""

    def __init__(self) -> None:
        self._tools: tuple[Tool, ...] = ()
        self._planner = Planner(())

    def __call__(self, tools: Sequence[Tool]) -> Planner:
        same = len(tools) == len(self._tools) and all(map(is_, tools, self._tools))
        if not same:
            self._tools, self._planner = tuple(tools), Planner([_offer(tool) for tool in tools])
        return self._planner


_planner = _Known()


def _excuse(request: str, abstained: Abstained, tools: Sequence[Tool]) -> str:
    if _GREETING.match(request) and not abstained.near:
        return f"Hello. {_MYSELF}"
    lines = [_MYSELF, *_near(abstained)]
    if not abstained.near and tools:
        names = ", ".join(tool.wire_name for tool in tools[:_SHOWN_TOOLS])
        more = f" and {len(tools) - _SHOWN_TOOLS} more" if len(tools) > _SHOWN_TOOLS else ""
        lines.append(f"Ask for something that one of these does: {names}{more}.")
    return "\n".join(lines)


def _near(abstained: Abstained) -> Iterator[str]:
    if abstained.reason == "unwanted":
        yield "I read that as something not to do, or as a question about it: nothing was done."
    for offer in abstained.near[:1]:
        needed = ", ".join(one.name for one in offer.fields if one.required)
        yield f"The nearest is {offer.name}; it needs: {needed or 'nothing'}."
