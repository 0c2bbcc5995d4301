"""The addresses of A2A: what is at each, what it takes, and for whom. No I/O here.

They are named as under the usual path; the operator may choose another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED_CARD: Final = "/.well-known/agent.json"
CARD: Final = "/.well-known/agent-card.json"
KEYS: Final = "/.well-known/jwks.json"
RPC: Final = "/a2a"
LIST: Final = "/a2a/agents"
AGENT: Final = "/a2a/agents/{name}"
AGENT_CARD: Final = "/a2a/agents/{name}/.well-known/agent-card.json"
AGENT_SEED_CARD: Final = "/a2a/agents/{name}/.well-known/agent.json"
AGENT_SEED: Final = "/a2a/agents/{name}/seed"
REST: Final = "/a2a/agents/{name}/rest/{path}"
SEND: Final = "/a2a/tasks/send"
TASK: Final = "/a2a/tasks/{id}"
CANCEL: Final = "/a2a/tasks/{id}/cancel"
HISTORY: Final = "/a2a/tasks/{id}/history"
NOTHING: Final = "/a2a/{path}"

_READ: Final = "GET, HEAD"
ROUTES: Final = {
    **dict.fromkeys((SEED_CARD, CARD, KEYS, AGENT_CARD, AGENT_SEED_CARD), _READ),
    **dict.fromkeys((LIST, TASK, HISTORY), _READ),
    **dict.fromkeys((RPC, AGENT, AGENT_SEED, SEND, CANCEL), "POST"),
}
"""What each address takes; the dialect itself says it of what is below `rest`."""
ENVELOPED: Final = frozenset({RPC, AGENT, AGENT_SEED})
"""These speak JSON-RPC."""
PUBLIC: Final = frozenset({SEED_CARD, CARD, KEYS})
"""These need no key, and look at none."""
PUBLISHED: Final = frozenset({AGENT_CARD, AGENT_SEED_CARD})
"""These need none for an agent that the operator publishes."""
CURRENT: Final = frozenset({CARD, AGENT_CARD})
"""These show cards of the current kind."""

_OF_AGENT: Final = {"agent-card.json": AGENT_CARD, "agent.json": AGENT_SEED_CARD}
_OF_TASK: Final = {"cancel": CANCEL, "history": HISTORY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is at an address, and whom or what it names; `rest` is what stands behind that."""

    route: str
    name: str = ""
    rest: str = ""


def place_of(path: str) -> Place:
    """Read what stands behind the path under which A2A is served."""
    match path.split("/"):
        case ["agents"]:
            return Place(route=LIST)
        case ["agents", name, *rest] if name:
            return _at_agent(unquote(name), rest)
        case ["tasks", "send"]:
            return Place(route=SEND)
        case ["tasks", task, *rest] if task:
            return _at_task(unquote(task), rest)
        case _:
            return Place(route=NOTHING)


def _at_agent(name: str, rest: Sequence[str]) -> Place:
    match rest:
        case []:
            return Place(route=AGENT, name=name)
        case [".well-known", file] if file in _OF_AGENT:
            return Place(route=_OF_AGENT[file], name=name)
        case ["seed"]:
            return Place(route=AGENT_SEED, name=name)
        case ["rest", *more]:
            return Place(route=REST, name=name, rest=f"/{'/'.join(more)}")
        case _:
            return Place(route=NOTHING)


def _at_task(task: str, rest: Sequence[str]) -> Place:
    match rest:
        case []:
            return Place(route=TASK, name=task)
        case [act] if act in _OF_TASK:
            return Place(route=_OF_TASK[act], name=task)
        case _:
            return Place(route=NOTHING)
