"""`openfang memory list|search|show|forget`: what is remembered, in a space of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfang.cli.errors import Usage
from openfang.cli.options import Json
from openfang.cli.output import clean, entry, fields, json_text, note, print_json, say
from openfang.cli.session import on_home
from openfang.core.memory import LONGEST_QUERY, MOST_RECALLED, Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

Agent = Annotated[str, Parameter(help="What this agent remembers for you.")]
Space = Annotated[str, Parameter(help="Any space, by its name: for administrators.")]
Limit = Annotated[int, Parameter(help="At most so many; else 20.")]
_SHOWN = ("key", "stored_at", "stored_by", "asked_by", "trace", "call_id", "labels")


def list_memories(
    *,
    agent: Agent = "",
    space: Space = "",
    after: Annotated[int, Parameter(help="Go on where the page before says.")] = 0,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """List what is remembered, the newest first."""
    _check(limit)
    if after < 0:
        raise Usage(f"--after is {after}.", way_out="what the page before says, or leave it out")
    wanted = Wanted(agent=agent, space=space, after=after, limit=limit)
    found = on_home(lambda session: session.memories(wanted))
    _show_all(found, as_json=as_json)
    if not as_json and found["after"]:
        note(f"there are more: openfang memory list --after {found['after']}")


def search(
    query: str,
    /,
    *words: str,
    agent: Agent = "",
    space: Space = "",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Find what is remembered by any of these words, the best first.

    Args:
        query: A word.
        words: More of them.
    """
    _check(limit)
    text = " ".join((query, *words))
    if not 0 < len(text) <= LONGEST_QUERY:
        raise Usage(
            f"The words have {len(text)} characters.", way_out=f"1 to {LONGEST_QUERY} of them"
        )
    wanted = Wanted(agent=agent, space=space, query=text, limit=limit)
    found = on_home(lambda session: session.memories(wanted))
    _show_all(found, as_json=as_json)


def show_memory(
    key: str, /, *, agent: Agent = "", space: Space = "", as_json: Json = False
) -> None:
    """Show what is kept under a key, whole, and where it comes from.

    Args:
        key: The key of the memory.
    """
    found = on_home(lambda session: session.memory(key, Wanted(agent=agent, space=space)))
    if as_json:
        print_json(found)
        return
    body = {**found, "labels": ", ".join(found["labels"])}
    fields({name.replace("_", " "): body[name] for name in _SHOWN if body[name]})
    say()
    say(clean(_text(found)))


def forget(key: str, /, *, agent: Agent = "", space: Space = "", as_json: Json = False) -> None:
    """Forget what is kept under a key.

    Args:
        key: The key of the memory.
    """
    where = Wanted(agent=agent, space=space)
    forgotten = on_home(lambda session: session.forget_memory(key, where))
    if as_json:
        print_json(forgotten)
    else:
        say(clean(f"{forgotten['key']} is forgotten."))


def _check(limit: int) -> None:
    if not 1 <= limit <= MOST_RECALLED:
        raise Usage(f"--limit is {limit}.", way_out=f"a number from 1 to {MOST_RECALLED}")


def _show_all(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for one in found["memories"]:
        entry(one["key"], _text(one), _whence(one))
    if not found["memories"]:
        note(f"Nothing of that is remembered in {clean(found['space'])}.")


def _whence(memory: Mapping[str, Any]) -> str:
    whence = f" by {memory['stored_by']} for {memory['asked_by']}" if memory["stored_by"] else ""
    labels = f", labels {', '.join(memory['labels'])}" if memory["labels"] else ""
    return f"stored {memory['stored_at']}{whence}{labels}"


def _text(memory: Mapping[str, Any]) -> str:
    value = memory["snippet"] if "snippet" in memory else memory["value"]
    return value if isinstance(value, str) else json_text(value)
