"""A session as Markdown, for people. Nothing that was said can look like another turn."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from openfang.core.agents import Speaker
from openfang.core.wire import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.core.sessions import SessionSummary, SessionTurn

_TICKS = re.compile("`+")
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def heading(session: SessionSummary) -> str:
    """Say which session it is."""
    known = {
        "session": session.id,
        "agent": session.agent,
        "caller": session.caller,
        "name": session.name,
        "messages": session.messages,
        "begun": moment(session.created_at),
        "last": moment(session.updated_at),
    }
    lines = "\n".join(f"- {word}: {_code(str(value))}" for word, value in known.items())
    return f"# {_line(session.title) or session.id}\n\n{lines}\n"


def section(session: SessionSummary, turn: SessionTurn) -> str:
    """Write one turn."""
    return "".join(f"\n{part}\n" for part in _parts(session, turn))


def _parts(session: SessionSummary, turn: SessionTurn) -> Iterator[str]:
    message, at = turn.message, moment(turn.at)
    if message.speaker is Speaker.TOOL:
        word = "Error" if message.is_error else "Result"
        yield f"## {word} of {_code(message.answers)}, {at}"
        yield _fenced(message.text)
        return
    who = "User" if message.speaker is Speaker.USER else _code(session.agent)
    yield f"## {who}, {at}"
    if message.text:
        yield "\n".join(f"> {line}".rstrip() for line in _BREAK.split(message.text))
    for wish in message.wishes:
        yield f"calls {_code(wish.tool)} as {_code(wish.id)}:"
        yield _fenced(json.dumps(wish.arguments, ensure_ascii=False, indent=2), "json")


def _line(text: str) -> str:
    return " ".join(text.split())


def _code(text: str) -> str:
    ticks = "`" * (_longest(text) + 1)
    space = " " if len(ticks) > 1 else ""
    return f"{ticks}{space}{_line(text)}{space}{ticks}"


def _fenced(text: str, language: str = "") -> str:
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
