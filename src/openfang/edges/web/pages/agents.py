"""Agents: what each may reach, its conversations, and a talk with it that shows its calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from openfang.core.agents import Speaker
from openfang.core.bodies import failure_body, message_body
from openfang.core.errors import CallFailed, CallRefused, Parked, Rejected
from openfang.core.ids import Kind, new_id, tool_id
from openfang.core.session import NO_OPTIONS
from openfang.core.wire import moment
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.progress import always_streamed
from openfang.edges.web.asking import Flow, Go, Page
from openfang.edges.web.words import segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.progress import Listener
    from openfang.core.sessions import SessionSummary, SessionTurn
    from openfang.edges.api.exchange import Answer
    from openfang.edges.web.asking import Ask

_LISTED: Final = 30
_LONGEST: Final = 200
_GRANTS: Final = ("tools", "agents", "network", "shell", "memory_read", "memory_write")


async def show(ask: Ask) -> Page | Go:
    """List the agents; where there are any, the talk is with the first."""
    found = await ask.session.agents()
    if found:
        return await _page(ask, str(found[0]["name"]))
    return Page(template="agents.html", title="Agents", section="agents", values={"agent": None})


async def one(ask: Ask) -> Page | Go:
    """Show one agent, or send it a message and wait for what comes of it."""
    name = ask.names["name"]
    if ask.came.method != "POST":
        return await _page(ask, name)
    if ask.form.get("act") == "delete":
        await ask.session.delete_session(ask.form.get("session", ""))
        return Go(where=f"/agents/{segment(name)}")
    chosen, message = _told(ask)
    refused: Any = None
    try:
        await ask.session.call(_tool(name), {"message": message, "session": chosen})
    except (CallRefused, CallFailed) as error:
        refused = error
    if refused is None:
        return Go(where=f"/agents/{segment(name)}?talk={segment(chosen)}")
    return await _page(ask, name, chosen, refused)


async def stream(ask: Ask) -> Flow:
    """Send a message, and tell what is said and called as it happens."""
    chosen, message = _told(ask)

    async def made(told: Listener) -> Answer:
        options = replace(NO_OPTIONS, progress=told)
        arguments = {"message": message, "session": chosen}
        try:
            found = await ask.session.call(_tool(ask.names["name"]), arguments, options)
        except CallFailed as failure:
            return json_answer(failure_body(failure))
        return json_answer(message_body(found))

    return Flow(pieces=always_streamed(made).pieces)


def _tool(name: str) -> str:
    return tool_id(Kind.AGENT, name)


def _told(ask: Ask) -> tuple[str, str]:
    message = ask.form.get("message", "").replace("\r\n", "\n").strip()
    if not message:
        raise Rejected("There is no message.", status=422, rule="form", way_out="write one")
    return ask.form.get("talk", "")[:_LONGEST] or new_id("web"), message


async def _page(ask: Ask, name: str, chosen: str = "", refused: Any = None) -> Page:  # noqa: ANN401 - an error
    agent = await ask.session.agent(name)
    listed = (await ask.session.sessions(agent=name, limit=_LISTED)).sessions
    chosen = chosen or ask.query.get("talk", "")[:_LONGEST]
    opened = next((one for one in listed if chosen in {one.id, one.name} and chosen), None)
    summary, turns = await ask.session.session(opened.id) if opened else (None, ())
    mine = summary is None or summary.caller == ask.caller.id
    return Page(
        template="agents.html",
        title=name,
        section="agents",
        values={
            "agent": agent,
            "agents": await ask.session.agents(),
            "grants": [(word, agent[word]) for word in _GRANTS if agent.get(word)],
            "insider": "tools" in agent,
            "sessions": [_listed(one) for one in listed],
            "opened": summary,
            "talk": summary.name if summary else new_id("web"),
            "turns": _turns(turns),
            "mine": mine,
            "refused": refused,
            "parked": refused.question_id if isinstance(refused, Parked) else "",
        },
    )


def _listed(session: SessionSummary) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title or "(no title)",
        "caller": session.caller,
        "messages": session.messages,
        "at": moment(session.updated_at),
    }


def _turns(turns: Sequence[SessionTurn]) -> list[dict[str, Any]]:
    """Lay a conversation out: who said what, and each call with what came of it."""
    results = {
        one.message.answers: one.message for one in turns if one.message.speaker is Speaker.TOOL
    }
    return [
        {
            "mine": one.message.speaker is Speaker.USER,
            "text": one.message.text,
            "at": moment(one.at),
            "calls": [
                {
                    "tool": wish.tool,
                    "arguments": dict(wish.arguments),
                    "result": results[wish.id].text if wish.id in results else "",
                    "kind": _ended(wish.id in results and results[wish.id].is_error),
                }
                for wish in one.message.wishes
            ],
        }
        for one in turns
        if one.message.speaker is not Speaker.TOOL
    ]


def _ended(error: bool) -> str:  # noqa: FBT001 - one word of it
    return "failed" if error else "allow"
