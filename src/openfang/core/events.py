"""Things that happened, for whoever listens: the registry, the audit, later the live page."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Level: TypeAlias = Literal["info", "warning", "error"]

TOOL_INVOCATION_START = "tool_invocation_start"
TOOL_INVOCATION_END = "tool_invocation_end"
POLICY_DECISION = "policy_decision"
POLICY_VIOLATION = "policy_violation"
APPROVAL_REQUESTED = "approval_requested"
APPROVAL_ANSWERED = "approval_answered"
APPROVAL_SPENT = "approval_spent"
KEY_CREATED = "key_created"
KEY_REVOKED = "key_revoked"
SPEC_FROZEN = "spec_frozen"
TOOL_HELD = "tool_held"
TOOL_ACCEPTED = "tool_accepted"

EVENT_KINDS = frozenset(
    {
        TOOL_INVOCATION_START,
        TOOL_INVOCATION_END,
        POLICY_DECISION,
        POLICY_VIOLATION,
        APPROVAL_REQUESTED,
        APPROVAL_ANSWERED,
        APPROVAL_SPENT,
        KEY_CREATED,
        KEY_REVOKED,
        SPEC_FROZEN,
        TOOL_HELD,
        TOOL_ACCEPTED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Something for the audit, before it is numbered and chained."""

    event: str
    level: Level = "info"
    call_id: str = ""
    task_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """A record as it stands in the log, for whoever reads behind it."""

    audit_id: int
    node: str
    created_at: str
    event_type: str
    level: str
    call_id: str
    task_id: str
    payload: Mapping[str, Any]
    context: Mapping[str, Any]
    hash: str

    @classmethod
    def of(cls, row: tuple[str, int, int, str, str, str, str, str, str, bytes]) -> AuditEvent:
        """Read a row of the log."""
        node, seq, at, event, level, call_id, task_id, payload, context, digest = row
        moment = datetime.fromtimestamp(at / 1e9, UTC)
        return cls(
            audit_id=seq,
            node=node,
            created_at=moment.isoformat(timespec="microseconds"),
            event_type=event,
            level=level,
            call_id=call_id,
            task_id=task_id,
            payload=json.loads(payload),
            context=json.loads(context),
            hash=digest.hex(),
        )

    def as_json(self) -> dict[str, Any]:
        """The event as one JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """The registry has a new snapshot."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
