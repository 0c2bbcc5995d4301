"""What becomes of a peer's task as the result of a call: its answer, what it made, how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.agents import Artifact
from openfang.core.artifacts import artifact_parts
from openfang.core.results import Result, text_part
from openfang.core.tasks import RESPONSE, TaskState
from openfang.sources.a2a.following import answer_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.results import Part
    from openfang.core.tasks import TaskArtifact
    from openfang.sources.a2a.following import PeerTask

_WORDS: Final = {
    TaskState.FAILED: "failed",
    TaskState.REJECTED: "rejected the task",
    TaskState.CANCELED: "ended the task",
}


def result_of(peer: str, task: PeerTask) -> Result:
    """Write it down; what did not end well is the tool's own error."""
    parts, made = _told_apart(task)
    said = "".join(part["text"] for part in parts if part.get("type") == "text")
    others = [part for part in parts if part.get("type") != "text"]
    artifacts = [Artifact(name=one.name, parts=tuple(map(_linked, one.parts))) for one in made]
    if others:
        artifacts.insert(0, Artifact(name=RESPONSE, parts=tuple(map(_linked, others))))
    text = _told(peer, task, said)
    return Result(
        content=(*((text_part(text),) if text else ()), *artifact_parts(artifacts)),
        structured={
            "task": task.id,
            "context": task.context,
            "state": task.state.value,
            "artifacts": [one.name for one in made],
        },
        is_error=task.state in _WORDS,
    )


def question_of(task: PeerTask) -> str:
    """Read what a task waits for."""
    return task.status.text if task.status else ""


def _told_apart(task: PeerTask) -> tuple[Sequence[Part], Sequence[TaskArtifact]]:
    """Tell what the agent says from what it made.

    Its answer is the artifact that it is here, else its last message. Before there is one, what
    counts is its question or its reason; what it had said until then it made.
    """
    if task.state is not TaskState.COMPLETED and task.status and task.status.parts:
        return task.status.parts, task.artifacts
    spoken = [part for one in task.artifacts if one.name == RESPONSE for part in one.parts]
    message = answer_of(task)
    made = [one for one in task.artifacts if one.name != RESPONSE]
    return spoken or (message.parts if message else ()), made


def _told(peer: str, task: PeerTask, said: str) -> str:
    if task.state in _WORDS:
        return f"{peer} {_WORDS[task.state]}: {said or 'it gave no reason'}"
    if task.state is TaskState.INPUT_REQUIRED:
        return f"{said}\n\n[{peer} waits for an answer: call it again with task = {task.id!r}]"
    if task.state is TaskState.AUTH_REQUIRED:
        return (
            f"{said}\n\n[{peer} waits for an authorization; then call it with task = {task.id!r}]"
        )
    return said


def _linked(part: Part) -> Mapping[str, Any]:
    """Write a file that lies elsewhere as a link."""
    match part:
        case {"type": "file", "uri": str(uri)}:
            name, kind = str(part.get("name") or uri), part.get("mime_type")
            return {"type": "resource_link", "uri": uri, "name": name, "mimeType": kind}
        case _:
            return part
