"""A conversation as a list of turns: what is still open in it, and how it is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.agents import Message, Speaker, Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_LOST: Final = "Error: it was interrupted; whether it had its effect is not known."


def unanswered(history: Sequence[Message]) -> tuple[Wish, ...]:
    """Find the calls at the end of a conversation that have no result yet."""
    answered: set[str] = set()
    for message in reversed(history):
        if message.speaker is Speaker.TOOL:
            answered.add(message.answers)
            continue
        return tuple(wish for wish in message.wishes if wish.id not in answered)
    return ()


def paired(history: Iterable[Message]) -> list[Message]:
    """Give each call its result right behind it, and drop results without their call.

    Runs that were cut off leave calls without one, and the result of one that waited for an answer
    stands behind other messages. The last calls stay open: they may yet be made.
    """
    said: list[tuple[Message, list[Message]]] = []
    waiting: dict[str, list[Message]] = {}
    for message in history:
        if message.speaker is not Speaker.TOOL:
            said.append((message, []))
            waiting |= dict.fromkeys((wish.id for wish in message.wishes), said[-1][1])
        elif (results := waiting.pop(message.answers, None)) is not None:
            results.append(message)
    for message, results in said[:-1]:
        answered = {result.answers for result in results}
        results += [lost(wish) for wish in message.wishes if wish.id not in answered]
    return [one for message, results in said for one in (message, *results)]


def trimmed(history: Sequence[Message], most: int) -> list[Message]:
    """Keep the last messages, cut where a person speaks; what they said last stays whole."""
    whole = paired(history)
    if len(whole) <= most:
        return whole
    starts = [n for n, message in enumerate(whole) if message.speaker is Speaker.USER]
    if not starts:
        return paired(whole[len(whole) - most :])
    fitting = [start for start in starts if len(whole) - start <= most]
    return whole[fitting[0] if fitting else starts[-1] :]


def closed(history: Sequence[Message]) -> list[Message]:
    """Answer what an earlier run left open, before anything else is said."""
    return [*history, *(lost(wish) for wish in unanswered(history))]


def resumed(
    history: Sequence[Message], begun: frozenset[str], safe: Callable[[Wish], bool]
) -> list[Message]:
    """Answer in place of a process that died: what it had begun and may not be repeated."""
    open_calls = [wish for wish in unanswered(history) if wish.id in begun and not safe(wish)]
    return [*history, *map(lost, open_calls)]


def lost(wish: Wish) -> Message:
    """Answer in place of a call of which nobody knows what came."""
    return Message(speaker=Speaker.TOOL, text=_LOST, answers=wish.id, is_error=True)
