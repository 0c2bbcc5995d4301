"""Things that happened, for whoever listens: the registry, the audit, later the live page."""

from __future__ import annotations

from dataclasses import dataclass, field
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
PEER_TOOL_CALL = "EXEC:TOOL_CALL"

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
        PEER_TOOL_CALL,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line for the audit, before it is numbered and chained."""

    event: str
    level: Level = "info"
    call_id: str = ""
    task_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record as it stands in the log: numbered, timed and chained."""

    node: str
    seq: int
    at: int
    event: str
    level: str
    call_id: str
    task_id: str
    payload: str
    context: str
    prev: bytes
    hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """The registry has a new snapshot."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
