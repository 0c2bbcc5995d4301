"""`openfang sessions list|show|export|delete`: conversations with agents."""

from __future__ import annotations

import re
import sys
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Annotated, Literal

import orjson
from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import (
    clean,
    entry,
    fields,
    is_terminal,
    json_text,
    note,
    paint,
    print_json,
    say,
)
from openfang.cli.session import on_home
from openfang.core.agents import Speaker
from openfang.core.sessions import CURSOR, MOST_SESSIONS
from openfang.core.wire import moment, session_body, turn_body

if TYPE_CHECKING:
    from openfang.core.session import Session
    from openfang.core.sessions import SessionSummary, SessionTurn

_SHOWN = ("id", "agent", "caller", "name", "messages", "labels", "created_at", "updated_at")


def list_sessions(
    *,
    agent: Annotated[str, Parameter(help="Only those with this agent.")] = "",
    after: Annotated[str, Parameter(help="Go on where the page before says.")] = "",
    limit: Annotated[int, Parameter(help="The newest so many; else 50.")] = 50,
    as_json: Json = False,
) -> None:
    """List conversations with agents, the newest first."""
    if not 1 <= limit <= MOST_SESSIONS:
        raise Usage(f"--limit is {limit}.", way_out=f"a number from 1 to {MOST_SESSIONS}")
    if after and not re.match(CURSOR, after):
        raise Usage(f"--after is {after!r}.", way_out="what the page before says, or leave it out")
    found = on_home(lambda session: session.sessions(agent=agent, after=after, limit=limit))
    if as_json:
        bodies = [session_body(one) for one in found.sessions]
        print_json({"sessions": bodies, "after": found.after})
        return
    for one in found.sessions:
        entry(one.id, one.title, _line(one))
    if not found.sessions:
        note("There is no session. Begin one: openfang chat AGENT")
    elif found.after:
        note(f"there are more: openfang sessions list --after {found.after}")


def _line(session: SessionSummary) -> str:
    count = "1 message" if session.messages == 1 else f"{session.messages} messages"
    last = moment(session.updated_at)
    return f"{session.caller} with {session.agent} ({session.name}), {count}, last at {last}"


def show_session(session_id: str, /, *, as_json: Json = False) -> None:
    """Show all that was said in a conversation.

    Args:
        session_id: The id of the session.
    """
    session, turns = on_home(lambda home: home.session(session_id))
    if as_json:
        print_json({**session_body(session), "turns": [turn_body(turn) for turn in turns]})
        return
    body = {**session_body(session), "labels": ", ".join(session.labels.names)}
    fields({name.replace("_", " "): body[name] for name in _SHOWN if body[name]})
    for turn in turns:
        _show(session, turn)


def _show(session: SessionSummary, turn: SessionTurn) -> None:
    message = turn.message
    who = {
        Speaker.USER: "user",
        Speaker.AGENT: clean(session.agent),
        Speaker.TOOL: f"{'error' if message.is_error else 'result'} of {clean(message.answers)}",
    }
    say()
    say(paint(f"{who[message.speaker]}, {moment(turn.at)}", "bold", sys.stdout))
    if message.text:
        say(clean(message.text))
    for wish in message.wishes:
        arguments = json_text(dict(wish.arguments), orjson.OPT_SORT_KEYS)
        say(clean(f"calls {wish.tool} as {wish.id}: {arguments}"))


def export(
    session_id: str,
    /,
    *,
    form: Annotated[
        Literal["jsonl", "md"], Parameter(name="--format", help="JSON lines, or Markdown.")
    ] = "jsonl",
) -> None:
    """Write a conversation to standard output, however long it is.

    Args:
        session_id: The id of the session.
    """

    async def work(session: Session) -> None:
        decoder = getincrementaldecoder("utf-8")()
        for_people = is_terminal(sys.stdout)
        async for piece in await session.export_session(session_id, form):
            text = decoder.decode(piece)
            sys.stdout.write(clean(text) if for_people else text)

    on_home(work)
    sys.stdout.flush()


def delete(session_id: str, /, *, as_json: Json = False) -> None:
    """Delete a conversation and all that was said in it.

    Args:
        session_id: The id of the session.
    """
    deleted = on_home(lambda session: session.delete_session(session_id))
    if as_json:
        print_json(session_body(deleted))
    else:
        say(f"{deleted.id} is deleted.")
