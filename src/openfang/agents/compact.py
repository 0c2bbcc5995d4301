"""A conversation made to fit a model's window (C6.4): what is asked is cut, never what is stored.

Pure. Sizes are in tokens, at four characters each. What the user said last stays as it was said,
and a call is never parted from its result.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from openfang.agents.handles import is_written
from openfang.core.agents import Message, Speaker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Group: TypeAlias = "list[Message]"
_CHARACTERS: Final = 4
_HEAD: Final = 200
_MARKED: Final = 40
_LINE: Final = 100
_MOST_LINES: Final = 20
_NOTE: Final = "[compacted: said before]"
_STEPS: Final = "[compacted: calls made before]"


def size(messages: Iterable[Message]) -> int:
    """How much of a window these take."""
    return -(-sum(map(_characters, messages)) // _CHARACTERS)


def fitted(messages: Sequence[Message], window: int) -> list[Message]:
    """Cut until it fits: results, the oldest first; then exchanges; then steps of the last one.

    What is left in the end, and may still be too long, is the last user turn and the newest step.
    """
    kept = ordered(messages)
    if not window or size(kept) <= window:
        return kept
    for cut in (_shorter_results, _fewer_exchanges, _fewer_steps):
        kept = cut(kept, window)
        if size(kept) <= window:
            return kept
    last = max((n for n, one in enumerate(kept) if one.speaker is Speaker.USER), default=-1)
    return [one for n, one in enumerate(kept) if n == last or not _is_note(one)]


def ordered(messages: Sequence[Message]) -> list[Message]:
    """Put results in the order of their calls: they were kept as they came."""
    found: list[Message] = []
    for group in _groups(messages):
        head, *results = group
        if head.speaker is Speaker.TOOL or not results:
            found += group
            continue
        place = {wish.id: number for number, wish in enumerate(head.wishes)}
        found += [head, *sorted(results, key=lambda one: place.get(one.answers, len(place)))]
    return found


def _characters(message: Message) -> int:
    wishes = sum(
        len(wish.tool) + len(orjson.dumps(dict(wish.arguments), default=str))
        for wish in message.wishes
    )
    return len(message.text) + wishes


def _groups(messages: Sequence[Message]) -> Iterator[Group]:
    """Split into what belongs together: a turn, with the results of its calls."""
    group: Group = []
    for message in messages:
        if group and message.speaker is not Speaker.TOOL:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _shorter_results(messages: list[Message], window: int) -> list[Message]:
    """Shorten results, the oldest first; those of the newest step last, and to what is left."""
    kept = list(messages)
    places = [n for n, one in enumerate(kept) if one.speaker is Speaker.TOOL]
    newest = _newest_results(kept)
    total = sum(map(_characters, kept))
    for place in places:
        if total <= window * _CHARACTERS:
            return kept
        if place not in newest:
            before = len(kept[place].text)
            kept[place] = _short(kept[place], _HEAD)
            total -= before - len(kept[place].text)
    if newest and total > window * _CHARACTERS:
        taken = sum(len(kept[place].text) for place in newest)
        share = (window * _CHARACTERS - (total - taken)) // len(newest) - _MARKED
        for place in newest:
            kept[place] = _short(kept[place], max(share, _HEAD))
    return kept


def _newest_results(messages: Sequence[Message]) -> range:
    first = len(messages)
    while first and messages[first - 1].speaker is Speaker.TOOL:
        first -= 1
    return range(first, len(messages))


def _short(message: Message, head: int) -> Message:
    text = message.text
    if len(text) <= head + _MARKED:
        return message
    return replace(message, text=f"{text[:head]} [compacted: {len(text)} characters]")


def _fewer_exchanges(messages: list[Message], window: int) -> list[Message]:
    """Put a note in the place of whole exchanges, the oldest first; the last one stays."""
    *before, _ = _exchanges(messages)
    lines: list[str] = []
    gone, total = 0, sum(map(_characters, messages))
    for exchange in before:
        gone += len(exchange)
        total -= sum(map(_characters, exchange))
        lines += _first_lines(exchange)
        note = _note(_NOTE, lines)
        if total + len(note.text) <= window * _CHARACTERS:
            break
    return [_note(_NOTE, lines), *messages[gone:]] if gone else messages


def _exchanges(messages: Sequence[Message]) -> list[Group]:
    found: list[Group] = []
    for message in messages:
        if not found or message.speaker is Speaker.USER:
            found.append([])
        found[-1].append(message)
    return found


def _fewer_steps(messages: list[Message], window: int) -> list[Message]:
    """Put a note in the place of the steps of the last exchange, the oldest first."""
    first = 1 + max(
        (n for n, one in enumerate(messages) if one.speaker is Speaker.USER), default=-1
    )
    steps = list(_groups(messages[first:]))[:-1]
    tools: dict[str, None] = {}
    gone, total = 0, sum(map(_characters, messages))
    for step in steps:
        gone += len(step)
        total -= sum(map(_characters, step))
        tools |= dict.fromkeys(wish.tool for wish in step[0].wishes)
        tools |= dict.fromkeys(_held(step))
        note = _note(_STEPS, list(tools))
        if total + len(note.text) <= window * _CHARACTERS:
            break
    if not gone:
        return messages
    note = replace(_note(_STEPS, list(tools)), speaker=Speaker.AGENT)
    return [*messages[:first], note, *messages[first + gone :]]


def _first_lines(messages: Sequence[Message]) -> list[str]:
    """The beginning of what the user said, turn by turn; of a note, what it had kept; handles."""
    lines: list[str] = []
    for message in messages:
        if message.speaker is Speaker.USER:
            said = message.text.strip().splitlines() or [""]
            lines += said[1:] if _is_note(message) else [said[0]]
    return [*lines, *_held(messages)]


def _held(messages: Sequence[Message]) -> list[str]:
    """Results that the model holds by their handles: without those it could not use them."""
    return [
        message.text
        for message in messages
        if message.speaker is Speaker.TOOL and is_written(message.text)
    ]


def _note(what: str, lines: Sequence[str]) -> Message:
    kept = [shorten(line[: 4 * _LINE], _LINE, placeholder="...") for line in lines[-_MOST_LINES:]]
    return Message(speaker=Speaker.USER, text="\n".join((what, *kept)))


def _is_note(message: Message) -> bool:
    return message.speaker is not Speaker.TOOL and message.text.startswith((_NOTE, _STEPS))
