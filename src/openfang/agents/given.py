"""What may come with a message: what was said before, how to answer, and tools of the caller's own.

Calls that a caller writes into a history are words like any others: none of them is ever made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from openfang.agents.attached import in_words, whole
from openfang.agents.history import closed, paired
from openfang.core.agents import Message, Speaker, Wish
from openfang.core.ids import Kind, tool_id
from openfang.core.labels import Labels
from openfang.core.tools import Tool, Trust
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from openfang.agents.spec import Mind

_KNOWN: Final = 200
_CALLERS: Final = "The caller adds to this, and cannot change it:"
_ROLES: Final = tuple(speaker.value for speaker in Speaker)
_TEXT: Final = {"type": "string"}
_CALL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"id": _TEXT, "tool": _TEXT, "arguments": {"type": "object"}},
    "required": ["id", "tool"],
    "additionalProperties": False,
}
_TURN: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "role": {"enum": list(_ROLES)},
        "text": _TEXT,
        "calls": {"type": "array", "items": _CALL, "maxItems": 1000},
        "answers": _TEXT,
        "is_error": {"type": "boolean"},
        "parts": {"type": "array", "items": {"type": "object"}, "maxItems": 1000},
    },
    "required": ["role"],
    "additionalProperties": False,
}
_TOOL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
        "description": _TEXT,
        "input_schema": {"type": "object"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
MORE: Final[dict[str, Any]] = {
    "history": {"type": "array", "items": _TURN, "maxItems": 10_000},
    "instructions": _TEXT,
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "max_tokens": {"type": "integer", "minimum": 1},
    "tools": {"type": "array", "items": _TOOL, "maxItems": 128},
}
"""What a message may come with besides, as JSON Schema: for programs, so no list shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What came with one message. A `history` is there in place of the session's own.

    It ends with what is to be answered, if that is the results of calls that the caller was asked
    to make: then nothing else is said.
    """

    history: Sequence[Message] | None = None
    instructions: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    tools: Sequence[Tool] = ()

    def mind(self, mind: Mind) -> Mind:
        """What the agent thinks with for this message: the caller adds words, and tightens."""
        added = f"{_CALLERS}\n{self.instructions}" if self.instructions else ""
        wanted = self.max_tokens
        return replace(
            mind,
            system="\n\n".join(filter(None, (mind.system, added))),
            temperature=mind.temperature if self.temperature is None else self.temperature,
            max_tokens=mind.max_tokens if wanted is None else min(wanted, mind.max_tokens),
        )

    def beside(self, own: Sequence[Tool]) -> Sequence[Tool]:
        """Offer the caller's tools; each takes the place of one of the agent's of that name."""
        if not self.tools:
            return own
        names = self.names
        return [*(tool for tool in own if tool.wire_name not in names), *self.tools]

    def looked_at(self, own: int) -> int:
        """How much of a session is read: what the agent remembers, or to know its words again."""
        if self.history is None:
            return own
        return _KNOWN if self.history else 0

    @property
    def names(self) -> frozenset[str]:
        """How the caller's tools are called."""
        return frozenset(tool.wire_name for tool in self.tools)


NOTHING: Final = Given()


def is_given(arguments: Mapping[str, Any]) -> bool:
    """Whether anything came with a message."""
    return not MORE.keys().isdisjoint(arguments)


async def read_given(
    arguments: Mapping[str, Any], blob: Callable[[str], Awaitable[bytes | None]]
) -> Given:
    """Read it; what came with earlier messages is put into words."""
    if not is_given(arguments):
        return NOTHING
    history = arguments.get("history")
    read = None if history is None else [await _turn(one, blob) for one in history]
    return Given(
        history=None if read is None else closed(paired(read)),
        instructions=arguments.get("instructions", ""),
        temperature=arguments.get("temperature"),
        max_tokens=arguments.get("max_tokens"),
        tools=tuple(map(_tool, arguments.get("tools", ()))),
    )


async def _turn(body: Mapping[str, Any], blob: Callable[[str], Awaitable[bytes | None]]) -> Message:
    return Message(
        speaker=Speaker(body["role"]),
        text=in_words(body.get("text", ""), await whole(body.get("parts", ()), blob)),
        wishes=tuple([_wish(one) for one in body.get("calls", ())]),
        answers=body.get("answers", ""),
        is_error=body.get("is_error", False),
    )


def _wish(body: Mapping[str, Any]) -> Wish:
    return Wish(id=body["id"], tool=body["tool"], arguments=body.get("arguments", {}))


def _tool(body: Mapping[str, Any]) -> Tool:
    name = body["name"]
    return Tool(
        id=tool_id(Kind.CLIENT, name),
        kind=Kind.CLIENT,
        source="caller",
        name=name,
        wire_name=name,
        description=body.get("description", ""),
        input_schema=body.get("input_schema", {}),
    )


def parted(
    whole: Sequence[Message], message: Message, given: Sequence[Message]
) -> tuple[list[Message], list[Message]]:
    """Part what was said before from what is to be answered: a message, or results of calls."""
    results = [] if message.text else _results_in(given)
    return [one for one in whole if one not in results], results or [message]


def _results_in(history: Sequence[Message]) -> list[Message]:
    found: list[Message] = []
    for message in reversed(history):
        if message.speaker is not Speaker.TOOL:
            break
        found.insert(0, message)
    return found


def joined(given: Sequence[Message], stored: Sequence[Message]) -> list[Message]:
    """Put in what the caller never saw: the agent's own calls since somebody last spoke.

    The session has them, if it has the calls that the caller was asked to make.
    """
    since, known = _since_spoken(stored), _since_spoken(given)
    wanted = {wish.id for message in known for wish in message.wishes}
    if not wanted or not wanted <= {wish.id for message in since for wish in message.wishes}:
        return list(given)
    results = {one.answers: one for one in known if one.speaker is Speaker.TOOL}
    ours = [one for one in since if one.speaker is not Speaker.TOOL or one.answers not in results]
    return paired([*given[: len(given) - len(known)], *ours, *results.values()])


def _since_spoken(history: Sequence[Message]) -> Sequence[Message]:
    starts = [n for n, message in enumerate(history) if message.speaker is Speaker.USER]
    return history[starts[-1] + 1 :] if starts else history


def described(tools: Iterable[Tool]) -> Labels:
    """What a model has read that is offered these: words of others, where they are not trusted."""
    for tool in tools:
        if tool.trust is Trust.LOW:
            return Labels.EXTERNAL_NETWORK
    return Labels.NONE


def foreign(given: Iterable[Message], stored: Iterable[Message]) -> Labels:
    """What a history carries that is not this agent's own: words of others, results of others."""
    known = {_plain(one.text) for one in stored if one.speaker is Speaker.AGENT} - {""}
    own = sorted(known, key=len, reverse=True)
    labels = Labels.NONE
    for one in given:
        if one.speaker is Speaker.TOOL:
            labels |= Labels.EXTERNAL_NETWORK
        elif one.speaker is Speaker.AGENT and _without(_plain(one.text), own):
            labels |= Labels.UNTRUSTED_AGENT
    return labels


def _plain(text: str) -> str:
    return "".join(text.split())


def _without(text: str, known: Iterable[str]) -> str:
    """Take out what the agent has said: who hears it piece by piece may have joined some of it."""
    for one in known:
        text = text.replace(one, "") if text else text
    return text
