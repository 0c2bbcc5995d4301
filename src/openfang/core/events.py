"""Things that happened, for whoever listens: the registry, the audit, later the live page."""

from __future__ import annotations

import json
import re
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

# What we write has none of these: numbers beyond 64 bits, halves of surrogate pairs, deep nesting.
_ODD = re.compile(r"[0-9]{19}|\\u[dD]")
_MOST_BITS = 64
_DEEPEST = 200

Level: TypeAlias = Literal["info", "warning", "error"]

TOOL_INVOCATION_START = "tool_invocation_start"
TOOL_INVOCATION_END = "tool_invocation_end"
POLICY_DECISION = "policy_decision"
POLICY_VIOLATION = "policy_violation"
APPROVAL_REQUESTED = "approval_requested"
APPROVAL_ANSWERED = "approval_answered"
APPROVAL_SPENT = "approval_spent"
APPROVAL_DELIVERED = "approval_delivered"
APPROVAL_UNDELIVERED = "approval_undelivered"
KEY_CREATED = "key_created"
KEY_REVOKED = "key_revoked"
SPEC_FROZEN = "spec_frozen"
RESULT_REVEALED = "result_revealed"
TOOL_HELD = "tool_held"
TOOL_ACCEPTED = "tool_accepted"
DEFINITION_HELD = "definition_held"
DEFINITION_ACCEPTED = "definition_accepted"
DEFINITION_NOTED = "definition_noted"
CONFIG_RELOADED = "config_reloaded"
SERVER_CHANGED = "server_changed"
CALL_SERVED = "call_served"
INSTALL_CHANGED = "install_changed"
INSTALL_HELD = "install_held"
SECRET_CHANGED = "secret_changed"  # noqa: S105 - a kind of event
NODE_CHANGED = "node_changed"
SESSION_DELETED = "session_deleted"
MEMORY_FORGOTTEN = "memory_forgotten"
TASK_CHANGED = "task_changed"
SCHEDULE_CHANGED = "schedule_changed"
SCHEDULE_DUE = "schedule_due"
EVENT_PUBLISHED = "event_published"
TRIGGER_REFUSED = "trigger_refused"
PUSH_DELIVERED = "push_delivered"
PUSH_GIVEN_UP = "push_given_up"
HOME_BACKUP = "home_backup"
HOME_RESTORED = "home_restored"


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
        """Read a row of the log; what somebody made unreadable is shown as the text it is."""
        node, seq, at, event, level, call_id, task_id, payload, context, digest = row
        return cls(
            audit_id=seq,
            node=_text(node),
            created_at=_moment(at),
            event_type=_text(event),
            level=_text(level),
            call_id=_text(call_id),
            task_id=_text(task_id),
            payload=_object(payload),
            context=_object(context),
            hash=_hex(digest),
        )

    def as_json(self) -> dict[str, Any]:
        """The event as one JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


def _moment(at: object) -> str:
    if not isinstance(at, int):
        return _text(at)
    return datetime.fromtimestamp(at / 1e9, UTC).isoformat(timespec="microseconds")


def _hex(digest: object) -> str:
    return digest.hex() if isinstance(digest, bytes) else _text(digest)


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def _object(column: object) -> Mapping[str, Any]:
    """Read a JSON object that can be written again; anything else comes back under `raw`."""
    text = _text(column)
    try:
        body: object = json.loads(text)
        if isinstance(column, str) and _writable(text, body) and isinstance(body, dict):
            return cast("dict[str, Any]", body)
    except (ValueError, RecursionError):
        pass
    return {"raw": text}


def _writable(text: str, body: object) -> bool:
    if text.count("[") + text.count("{") > _DEEPEST and _depth(body) > _DEEPEST:
        return False
    if not _ODD.search(text):
        return True
    json.loads(text, parse_int=_small)
    json.dumps(body, ensure_ascii=False).encode()
    return True


def _small(digits: str) -> int:
    number = int(digits)
    if number.bit_length() > _MOST_BITS:
        raise ValueError(digits)
    return number


def _depth(value: object) -> int:
    """How deep lists and objects lie in each other."""
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [inner for outer in level for inner in _inside(outer)]
    return deepest


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """The registry has a new snapshot."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
