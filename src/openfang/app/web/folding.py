"""Records of the log, folded into the calls that they are about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.events import (
    APPROVAL_ANSWERED,
    APPROVAL_REQUESTED,
    POLICY_VIOLATION,
    TOOL_INVOCATION_START,
    AuditEvent,
)
from openfang.core.watching import SeenCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ENDS: Final = {"ok": "allow", "cancelled": "none"}
_ANSWERS: Final = {"approved": "none", "spent": "none"}
_STANDS: Final = {
    APPROVAL_REQUESTED: "ask",
    POLICY_VIOLATION: "deny",
    TOOL_INVOCATION_START: "run",
}
_TEXTS: Final = ("tool", "caller", "edge", "trace", "reason", "rule", "outcome")


def fold(records: Iterable[Mapping[str, Any]]) -> list[SeenCall]:
    """Make calls of records that come in order; the call with the newest record comes first."""
    calls: dict[str, dict[str, Any]] = {}
    for record in records:
        id_ = record["call_id"]
        if not id_:
            continue
        found = calls.pop(id_, None) or _begun(record)
        calls[id_] = _with(found, record)
    return [SeenCall(**one) for one in reversed(calls.values())]


def _begun(record: Mapping[str, Any]) -> dict[str, Any]:
    at, node = record["created_at"], record["node"]
    return {"id": record["call_id"], "at": at, "node": node, "verdict": "run"}


def flat(event: AuditEvent) -> dict[str, Any]:
    """Lay out a whole record as the short ones are."""
    return {
        **event.payload,
        **event.context,
        "call_id": event.call_id,
        "audit_id": event.audit_id,
        "node": event.node,
        "event_type": event.event_type,
        "created_at": event.created_at,
    }


def _with(call: dict[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: str(record[name]) for name in _TEXTS if record.get(name) is not None}
    place = {"audit": record["audit_id"], "keeper": record["node"]}
    call = {"tool": "", "caller": "", **call, **told, **place}
    if record["event_type"] == APPROVAL_ANSWERED and call["verdict"] != "ask":
        return call
    call["verdict"] = verdict_of(record, call["verdict"])
    if isinstance(depth := record.get("depth"), int):
        call["depth"] = depth
    for name in ("labels", "ancestors"):
        if isinstance(words := record.get(name), list):
            call[name] = tuple(map(str, words))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(us := record.get("duration_us"), int):
        call["us"] = us
    return call


def verdict_of(record: Mapping[str, Any], before: str = "run") -> str:
    """Say how a call stands after a record."""
    event = record["event_type"]
    match event:
        case "policy_decision":
            return "ask" if record.get("decision") == "ask" else before
        case "tool_invocation_end":
            return _ENDS.get(str(record.get("outcome")), "failed")
        case "approval_answered":
            return _ANSWERS.get(str(record.get("state")), "deny")
        case _:
            return _STANDS.get(event, before)
