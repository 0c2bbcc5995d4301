"""The planner as a model like any other: it wants one call, and then tells what came of it.

It says what it is. It does not reason over results; it hands them on.
"""

from __future__ import annotations

import re
from operator import is_
from typing import TYPE_CHECKING, Final

from openfang.agents.planner.offer import Offer
from openfang.agents.planner.plan import Abstained, Planned, Planner, Why
from openfang.agents.planner.sayings import HOW
from openfang.core.agents import Prompt, Speaker, Spent, Usage, Wanted, Wish, Words
from openfang.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from openfang.core.agents import Message, Said
    from openfang.core.tools import Tool

_DESTRUCTIVE_TAGS: Final = frozenset({"fs.delete", "database.delete", "cloud.resource_delete"})
_PIECES = re.compile(r"\S+\s*|\s+")
_SHORT: Final = 3
_SHOWN_TOOLS: Final = 8
_SHOWN_LEFT: Final = 5
_SHOWN_TEXT: Final = 60
_NOTHING: Final = "It was done, and there was nothing in its answer."
_COURTESIES: Final = (
    (re.compile(r"\W*(?:thanks?|thx)\b", re.IGNORECASE), "You are welcome."),
    (re.compile(r"\W*(?:good night|good ?bye|bye|see you)\b", re.IGNORECASE), "Goodbye."),
    (re.compile(r"\W*(?:hi|hello|hey|good \w+)\b", re.IGNORECASE), "Hello."),
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
            text = "\n\n".join(message.text or _NOTHING for message in results)
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
    return Offer(
        tool.wire_name,
        tool.description,
        tool.input_schema,
        destructive=destructive,
        changes=not tool.only_reads,
    )


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
    courtesy = _courtesy(request)
    if courtesy and len(request.split()) <= _SHORT:
        return f"{courtesy} {_MYSELF}"
    lines = [f"{courtesy} {_MYSELF}".strip(), *_reasons(abstained)]
    if not abstained.near and abstained.why is Why.NOTHING_FITS and tools:
        names = ", ".join(tool.wire_name for tool in tools[:_SHOWN_TOOLS])
        more = f" and {len(tools) - _SHOWN_TOOLS} more" if len(tools) > _SHOWN_TOOLS else ""
        lines.append(f"Ask for something that one of these does: {names}{more}.")
    return "\n".join(lines)


def _courtesy(request: str) -> str:
    return next((answer for said, answer in _COURTESIES if said.match(request)), "")


def _reasons(abstained: Abstained) -> Iterator[str]:
    if abstained.why is Why.UNWANTED:
        yield "I read that as something not to do, or as a question about it: nothing was done."
    if abstained.why is Why.STATEMENT:
        yield "I read that as something told, and not as a request: nothing was done."
    if abstained.why is Why.TOO_LONG:
        yield "That is too long for a plain request: nothing was done."
    if abstained.left:
        shown = ", ".join(f'"{text[:_SHOWN_TEXT]}"' for text in abstained.left[:_SHOWN_LEFT])
        yield f"I do not know what to do with {shown}, so nothing was done."
    if abstained.near:
        yield from _nearest(abstained.near, abstained.why)


def _nearest(offer: Offer, why: Why) -> Iterator[str]:
    needed = ", ".join(one.name for one in offer.required)
    more = ", ".join(one.name for one in offer.fields if not one.required)
    also = f"; it can be told: {more}" if more else ""
    yield f"The nearest is {offer.name}; it needs: {needed or 'nothing'}{also}."
    if {"key", "value"} <= {one.name for one in offer.required}:
        yield HOW
    elif offer.destroys:
        yield "It is called only when it is ordered plainly, for one thing; a name goes in quotes."
    elif why is Why.MISSING:
        yield "Write a text or a name in quotes, and a command in backticks."
