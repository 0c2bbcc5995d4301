"""Messages to a peer of the first dialect, and its tasks, as we speak of them. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.core.errors import SourceFailed
from openfang.core.tasks import Role
from openfang.protocols.a2a.seed import Unreadable, read_task, write_message
from openfang.sources.a2a.following import PeerTask
from openfang.sources.a2a.shapes import object_in

if TYPE_CHECKING:
    from openfang.core.tasks import Sent


def is_task(found: object) -> bool:
    """Whether this is meant to be a task at all."""
    return isinstance(found, dict) and "id" in found and "status" in found


def task_of(found: object) -> PeerTask:
    """Read a task. What the agent said last is what it says with its state."""
    try:
        task = read_task(_plain(found))
    except Unreadable as wrong:
        raise SourceFailed(f"it sent a task that makes no sense: {wrong}") from wrong
    status, said = task.status, task.messages
    if status is None and said and said[-1].role is Role.AGENT:
        status, said = said[-1], said[:-1]
    return PeerTask(
        id=task.id,
        context=task.context,
        state=task.state,
        status=status,
        history=said,
        artifacts=task.artifacts,
        metadata=object_in(object_in(found).get("metadata")),
    )


def _plain(found: object) -> object:
    """Write what is said with a state as a message, where it is a mere text."""
    task = object_in(found)
    status = object_in(task.get("status"))
    words = status.get("message")
    if not isinstance(words, str):
        return found
    said = {"role": Role.AGENT.value, "parts": [{"type": "text", "text": words}]}
    return {**task, "status": {**status, "message": said}}


def params_of(sent: Sent) -> dict[str, Any]:
    """Write what sends a message: `id` is that of a task that asked for it."""
    params: dict[str, Any] = {"message": write_message(sent.message)}
    if sent.task:
        params["id"] = sent.task
    if sent.context:
        params["sessionId"] = sent.context
    if metadata := {**sent.metadata, **sent.message.metadata}:
        params["metadata"] = metadata
    return params
