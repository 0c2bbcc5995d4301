"""What people do with A2A: they give agents work, and look at whom the node knows elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import NotFound, Rejected, SourceFailed
from openfang.core.ids import Kind, new_id, tool_id, wire_name
from openfang.core.results import text_part
from openfang.core.tasks import Role as Speaks
from openfang.core.tasks import Sent, TaskMessage
from openfang.core.tools import Tool
from openfang.safety.urls import without_user

if TYPE_CHECKING:
    from openfang.app.a2a.peer import PeerState
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller

_INSIDERS: Final = (Role.AUDITOR, Role.ADMIN)


def written(agent: str, message: str, context: str, task: str) -> Sent:
    """What a person wrote, as the message that it is."""
    said = TaskMessage(id=new_id("message"), role=Speaks.USER, parts=(text_part(message),))
    return Sent(agent=agent, message=said, context=context, task=task)


def check_enabled(parts: Parts) -> None:
    """Refuse to keep work while A2A is switched off (C2.5)."""
    if not parts.config.a2a.enabled:
        raise Rejected(
            "Tasks are not taken by this node: a2a.enabled is false.",
            status=404,
            rule="a2a_disabled",
            way_out="[a2a] enabled = true in config.toml",
        )


def check_reached(parts: Parts, caller: Caller, name: str) -> None:
    """Say why a peer that the caller could call is no tool: it was never reached."""
    peer = parts.peers.running.get(name) if parts.peers else None
    tool = tool_id(Kind.A2A, name)
    if peer is None or parts.registry.find(tool) is not None:
        return
    wire = wire_name(Kind.A2A.value, name)
    maybe = Tool(id=tool, kind=Kind.A2A, source=name, name=name, wire_name=wire)
    if parts.catalog.sees(caller, maybe):
        why = peer.error if caller.role in _INSIDERS else ""
        raise SourceFailed(
            f"The agent {name} was not reached yet{f': {why}' if why else ''}.",
            way_out=f"openfang a2a discover {name}",
        )


def peers_body(parts: Parts, caller: Caller) -> list[dict[str, Any]]:
    """All agents elsewhere; a caller without a role sees those that it may call, and not where."""
    states = parts.peers.states() if parts.peers else []
    if caller.role in _INSIDERS:
        return [_peer_body(state) for state in states]
    known = {tool.source for tool in parts.catalog.list(caller, kind=Kind.A2A)}
    seen = [_peer_body(state) for state in states if state.name in known]
    return [{**one, "url": None, "error": None, "card": _unlocated(one["card"])} for one in seen]


def peer_body(parts: Parts, caller: Caller, name: str) -> dict[str, Any]:
    """One of them; what the caller does not see is not there."""
    for one in peers_body(parts, caller):
        if one["name"] == name:
            return one
    raise NotFound(f"No agent elsewhere is called {name}.", way_out="openfang a2a peers")


def _unlocated(card: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if card is None else {**card, "interfaces": []}


def _peer_body(peer: PeerState) -> dict[str, Any]:
    return {
        "name": peer.name,
        "url": without_user(peer.url),
        "state": peer.state,
        "card": None if peer.card is None else dict(peer.card),
        "error": peer.error or None,
    }
