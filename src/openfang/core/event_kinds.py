"""What each kind of record in the audit log tells, at which level, with which keys of its payload.

The page of the audit log is written from this, and tests hold what is really written against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core import events
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.events import Level


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind: when it is written, at which levels, and what its payload may have."""

    name: str
    when: str
    fields: tuple[str, ...]
    levels: tuple[Level, ...] = ("info",)


_ANSWERED: Final = (
    "question",
    "state",
    "scope",
    "rule",
    "reason",
    "arguments_hash",
    "answered_by",
    "via",
)
_PUSHED: Final = ("task", "push", "host", "n", "state", "tries", "reason")
_DELIVERED: Final = ("question", "host", "tries", "reason")
_HELD: Final = ("was", "now", "reason", "diff", "findings")

KINDS: Final = (
    EventKind(
        events.POLICY_DECISION,
        "Once per call: each gate's verdict; those after a refusal are `not_reached`. Of the "
        "operator's rules the names of those that decided, and what a shadow would have said. "
        "Labels only of a call that is not made.",
        ("decision", "gates", "labels"),
    ),
    EventKind(
        events.POLICY_VIOLATION,
        "A refusal: which step and which rule, and why. Of a flow, the argument and the value "
        "that nobody had named. Arguments, redacted, where the gates were asked: not those of a "
        "call that carries a secret, nor over 16 KiB.",
        ("step", "rule", "reason", "gate", "labels", "arguments", "hidden"),
        ("warning",),
    ),
    EventKind(
        events.TOOL_INVOCATION_START,
        "Before anything runs.",
        ("arguments", "risk", "side_effects", "labels"),
    ),
    EventKind(
        events.TOOL_INVOCATION_END,
        "How it ended: `ok`, `error`, `timeout`, `cancelled`, `failed`, or `interrupted` where a "
        "process died. `steps_us` is how long it was judged, waited for a person, was written "
        "down and ran; `size` the characters of what came back, of which nothing is kept. For "
        "effects of other people's tools, unless highly trusted, digests of arguments and result "
        "are the evidence.",
        ("outcome", "duration_us", "steps_us", "size", "labels", "reason", "evidence"),
        ("info", "warning", "error"),
    ),
    EventKind(events.APPROVAL_REQUESTED, "A call waits for a person's answer.", _ANSWERED),
    EventKind(
        events.APPROVAL_ANSWERED,
        "A question was answered: by whom, by which way, and how far a yes goes.",
        _ANSWERED,
    ),
    EventKind(events.APPROVAL_SPENT, "A call has used a yes.", _ANSWERED),
    EventKind(events.APPROVAL_DELIVERED, "The webhook took a question.", _DELIVERED),
    EventKind(
        events.APPROVAL_UNDELIVERED,
        "The webhook never took a question: it was given up.",
        _DELIVERED,
        ("warning",),
    ),
    EventKind(
        events.KEY_CREATED,
        "A key or an admin token was made.",
        ("key", "name", "role", "tools", "by"),
    ),
    EventKind(events.KEY_REVOKED, "One was ended.", ("key", "name")),
    EventKind(events.SPEC_FROZEN, "A plan was frozen.", ("spec", "project", "name")),
    EventKind(
        events.TOOL_HELD,
        "What a tool or an agent says of itself changed, or is suspicious: it is held back.",
        _HELD,
        ("warning",),
    ),
    EventKind(
        events.TOOL_ACCEPTED,
        "A person took it as it is, with what was found in it.",
        ("tool", "digest", "findings"),
    ),
    EventKind(
        events.DEFINITION_HELD,
        "The same of a prompt, a template, a resource or instructions.",
        _HELD,
        ("warning",),
    ),
    EventKind(
        events.DEFINITION_ACCEPTED,
        "A person took it as it is, with what was found in it.",
        ("definition", "digest", "findings"),
    ),
    EventKind(
        events.DEFINITION_NOTED,
        "A definition was offered although something was found in it.",
        ("now", "findings"),
    ),
    EventKind(
        events.RESULT_REVEALED,
        "An agent read a result that it had held as a handle; its labels entered the run.",
        ("handle", "labels"),
    ),
    EventKind(
        events.SERVER_CHANGED,
        "An MCP server was added, removed, enabled, disabled or restarted.",
        ("server", "act"),
    ),
    EventKind(
        events.CALL_SERVED,
        "Before a call of another node is passed to a server that runs once, and on this one. Its "
        "own records are in the chain of the `node` that it came in at, under the same id.",
        ("node", "server", "asked", "term"),
    ),
    EventKind(
        events.INSTALL_CHANGED,
        "An extension or skill was installed, enabled, disabled or removed: the digest of its "
        "files, where it came from, what was found in it, and what differs from what was "
        "accepted before.",
        ("kind", "install", "act", "version", "digest", "origin", "findings", "changes"),
        ("info", "warning"),
    ),
    EventKind(
        events.INSTALL_HELD,
        "One that is enabled was held back: its files are not those that were accepted, or it "
        "cannot be used.",
        ("kind", "install", "reason"),
        ("warning",),
    ),
    EventKind(
        events.SECRET_CHANGED,
        "A secret was stored or removed, and which servers refer to it; never its value.",
        ("name", "act", "servers"),
    ),
    EventKind(
        events.SESSION_DELETED,
        "A conversation with an agent was deleted: whose, and of how many messages; nothing of "
        "what was said.",
        ("session", "agent", "of", "messages"),
    ),
    EventKind(
        events.MEMORY_FORGOTTEN,
        "Somebody had a memory forgotten; nothing of what it was.",
        ("space", "key"),
    ),
    EventKind(
        events.TASK_CHANGED,
        "A task of an agent began or came into another state; the reason of an end that is no "
        "answer.",
        ("task", "agent", "context", "from", "to", "reason"),
        ("info", "warning"),
    ),
    EventKind(
        events.PUSH_DELIVERED, "A notification about a task reached whom it was for.", _PUSHED
    ),
    EventKind(
        events.PUSH_GIVEN_UP,
        "A notification about a task never will; its token is never told.",
        _PUSHED,
        ("warning",),
    ),
    EventKind(
        events.SCHEDULE_CHANGED,
        "A schedule was created, deleted, paused, resumed or run by hand.",
        ("schedule", "act", "agent", "owner", "when", "timezone"),
    ),
    EventKind(
        events.SCHEDULE_DUE,
        "A schedule was due and began no run: it was skipped or refused. A run that began is a "
        "task.",
        ("schedule", "agent", "due", "outcome", "reason"),
        ("info", "warning"),
    ),
    EventKind(
        events.EVENT_PUBLISHED,
        "An event: its type, the triggers that it started, and those held back, each with the "
        "reason.",
        ("id", "event", "payload", "labels", "triggered", "held"),
    ),
    EventKind(
        events.TRIGGER_REFUSED,
        "A run that an event started was refused.",
        ("agent", "task", "reason"),
        ("warning",),
    ),
    EventKind(
        events.NODE_CHANGED,
        "A node of several was told to `drain` or to `resume`, or was `remove`d; or it was `gone`, "
        "and this one took over what it had left: so many open calls were ended.",
        ("node", "act", "process", "calls"),
        ("info", "warning"),
    ),
    EventKind(
        events.CONFIG_RELOADED,
        "Another configuration is in force; the keys at its root that changed.",
        ("changed",),
    ),
    EventKind(
        events.HOME_BACKUP,
        "`started` before anything is copied, then `made`, with the file's digest, or `failed`.",
        ("state", "file", "sha256", "head", "reason"),
        ("info", "error"),
    ),
    EventKind(
        events.HOME_RESTORED,
        "The log goes on from a backup: from which record, and which file.",
        ("file", "head", "hash", "made_at", "version"),
        ("warning",),
    ),
)
