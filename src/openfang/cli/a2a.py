"""`openfang a2a discover|send|peers`: agents elsewhere, and messages to any agent."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from openfang.app.daemon.discovery import find_daemon_now
from openfang.cli.call import summary
from openfang.cli.errors import ERROR, FAILED, PARKED, Usage
from openfang.cli.options import Json
from openfang.cli.output import fields, first_sentence, note, print_json, say, table
from openfang.cli.progress import shown_progress
from openfang.cli.results import print_text, readable
from openfang.cli.session import on_home
from openfang.cli.stories import code_of, settled
from openfang.config.home import find_home
from openfang.core.bodies import result_body
from openfang.core.errors import NotFound
from openfang.core.ids import Kind, tool_id
from openfang.core.results import Result
from openfang.core.session import NO_OPTIONS
from openfang.core.task_wire import task_body
from openfang.core.tasks import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.session import Session
    from openfang.core.tasks import Task

_AGENT: Final = "agent"
_PEER: Final = "peer"
_URL: Final = "url"
_HELD: Final = "held"


def peers(*, as_json: Json = False) -> None:
    """List the agents elsewhere that are configured, and how each is."""
    found = on_home(lambda session: session.peers())
    if as_json:
        print_json(found)
        return
    rows = [(one["name"], one["state"], one["url"], _about(one)) for one in found]
    if rows:
        table(("name", "state", "url", "what it is for"), rows)
    else:
        note("No agent elsewhere is configured: [[a2a.external_agents]] in config.toml.")


def _about(peer: Mapping[str, Any]) -> str:
    if peer["error"]:
        return str(peer["error"])
    return first_sentence(peer["card"]["description"]) if peer["card"] else ""


def discover(where: str, /, *, as_json: Json = False) -> int:
    """Read the card of an agent elsewhere: who it is, and what it says it can do.

    Args:
        where: Its address, or the name it has here.
    """
    if "://" not in where:
        return _show_peer(where.removeprefix("a2a:"), as_json=as_json)
    result = on_home(lambda session: session.call("a2a_discover", {_URL: where}))
    return show_result(result, where, as_json=as_json)


def _show_peer(name: str, *, as_json: bool) -> int:
    found = on_home(lambda session: session.discover_peer(name))
    if as_json:
        print_json(found)
    else:
        fields({key: value for key, value in _shown(found).items() if value})
    if found["state"] == _HELD:
        note(f"its card changed; take it as it is now: openfang tools accept a2a:{name}")
    return 0 if found["state"] == "discovered" else ERROR


def _shown(peer: Mapping[str, Any]) -> dict[str, str | None]:
    card: Mapping[str, Any] = peer["card"] or {}
    return {
        "name": peer["name"],
        "state": peer["state"],
        "url": peer["url"],
        "error": peer["error"],
        "agent": card.get("name"),
        "what it is for": card.get("description"),
        "version": card.get("version"),
        "dialects": ", ".join(card.get("dialects", ())),
        "skills": "\n".join(one["name"] for one in card.get("skills", ())),
    }


def send(
    to: str,
    message: str,
    /,
    *,
    context: Annotated[str, Parameter(help="The conversation to go on with.")] = "",
    task: Annotated[str, Parameter(help="The task that asked for this.")] = "",
    no_wait: Annotated[bool, Parameter(help="Print the task, and do not wait for it.")] = False,
    as_json: Json = False,
) -> int:
    """Send a message to an agent, here or elsewhere, and print its answer.

    For example `openfang a2a send assistant "what time is it?"`.

    An agent of this node gets a task, with which a daemon goes on when you stop waiting.

    Args:
        to: An agent of this node, one that is configured elsewhere, or a URL.
        message: What to tell it.
    """
    if no_wait and find_daemon_now(find_home(os.environ)) is None:
        raise Usage(
            "--no-wait needs a daemon that goes on with the task.",
            way_out="openfang start --detach, or leave it out",
        )

    async def work(home: Session) -> Task | Result:
        kind, name = await _meant(home, to)
        if kind != _AGENT:
            _check_waits(no_wait=no_wait)
            return await _sent(home, kind, name, _given(message, context, task))
        begun = await home.send_task(name, message, context=context, task=task)
        return begun if no_wait else await settled(home, begun, silent=as_json)

    done = on_home(work)
    if isinstance(done, Result):
        return show_result(done, to, as_json=as_json)
    if as_json:
        print_json(task_body(done))
    elif no_wait:
        say(done.id)
        note(f"watch it: openfang a2a watch {done.id}")
    return code_of(done)


def _check_waits(*, no_wait: bool) -> None:
    if no_wait:
        raise Usage("--no-wait is for agents of this node.", way_out="leave it out")


async def _meant(home: Session, to: str) -> tuple[str, str]:
    """Find out who is meant: an agent of ours comes first, unless `a2a:` says otherwise."""
    if "://" in to:
        return _URL, to
    if to.startswith("agent:"):
        return _AGENT, to.removeprefix("agent:")
    if not to.startswith("a2a:") and any(one["name"] == to for one in await home.agents()):
        return _AGENT, to
    peer = to.removeprefix("a2a:")
    if any(one["name"] == peer for one in await home.peers()):
        return _PEER, peer
    raise NotFound(
        f"No agent {to} is known, here or elsewhere.",
        way_out="openfang agents list, openfang a2a peers, or give its URL",
    )


async def _sent(home: Session, kind: str, name: str, given: dict[str, str]) -> Result:
    """Call an agent elsewhere: a configured one is a tool of its own."""
    tool = tool_id(Kind.A2A, name) if kind == _PEER else "a2a_send"
    arguments = given if kind == _PEER else {_URL: name, **given}
    with shown_progress() as told:
        return await home.call(tool, arguments, replace(NO_OPTIONS, progress=told))


def _given(message: str, context: str, task: str) -> dict[str, str]:
    chosen = {"message": message, "context": context, "task": task}
    return {name: value for name, value in chosen.items() if value}


def show_result(result: Result, to: str, *, as_json: bool) -> int:
    """Print what came of a call elsewhere; the answer is the exit code."""
    if as_json:
        print_json(result_body(result))
    else:
        print_text(readable(result.content, result.structured))
        note(summary(result))
    if result.is_error:
        return FAILED
    match result.structured:
        case {"state": TaskState.INPUT_REQUIRED.value, "task": str(asks)}:
            note(f"answer it: openfang a2a send {to} ANSWER --task {asks}")
            return PARKED
        case _:
            return 0
