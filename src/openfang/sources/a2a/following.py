"""A peer's task as it is told, piece by piece or as a whole, and what of that is new. No I/O."""

from __future__ import annotations

import json
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openfang.core.errors import SourceFailed
from openfang.core.tasks import Role, TaskArtifact, TaskMessage, TaskState
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from openfang.core.results import Part

LARGEST: Final = 10_000_000
"""So many bytes of a task are kept."""
_MOST_ARTIFACTS: Final = 1_000
# Texts are not counted: a peer may tell its words one by one.
_MOST_OTHERS: Final = 1_000


class TooMuch(SourceFailed):
    """A peer sends more than is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTask:
    """A task of a peer's. One without an id is a mere answer, and has ended."""

    id: str = ""
    context: str = ""
    state: TaskState = TaskState.SUBMITTED
    status: TaskMessage | None = None
    history: tuple[TaskMessage, ...] = ()
    artifacts: tuple[TaskArtifact, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Another state, and what is said with it."""

    id: str
    context: str
    state: TaskState
    status: TaskMessage | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An artifact, or what is to be appended to it."""

    id: str
    context: str
    artifact: TaskArtifact
    append: bool = False


Event: TypeAlias = PeerTask | Turned | Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What is new: words of the answer, or a state with what was said in it."""

    id: str
    state: TaskState
    words: str = ""
    said: str = ""


@dataclass(slots=True)
class Following:
    """Puts together what is told of one task."""

    id: str = ""
    context: str = ""
    state: TaskState = TaskState.SUBMITTED
    _status: TaskMessage | None = None
    _history: tuple[TaskMessage, ...] = ()
    _artifacts: dict[str, _Growing] = field(default_factory=dict[str, "_Growing"])
    _metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    _size: int = 0
    _others: int = 0
    begun: bool = False

    @property
    def said(self) -> str:
        """What was said with the state."""
        return self._status.text if self._status else ""

    @property
    def silent(self) -> bool:
        """Whether nothing was told but the state."""
        return not (self._status or self._history or self._artifacts)

    @property
    def resting(self) -> bool:
        """Whether it has ended, or waits for us."""
        return self.state.resting

    @property
    def task(self) -> PeerTask:
        """The task, as far as it was told."""
        return PeerTask(
            id=self.id,
            context=self.context,
            state=self.state,
            status=self._status,
            history=self._history,
            artifacts=tuple(one.whole() for one in self._artifacts.values()),
            metadata=self._metadata,
        )

    def hear(self, event: Event) -> Heard:
        """Take what comes next."""
        self.begun = True
        self.id, self.context = event.id or self.id, event.context or self.context
        match event:
            case PeerTask():
                return self._whole(event)
            case Turned(state=state, status=status, metadata=metadata):
                self.state, self._status = state, status
                self._metadata.update(metadata)
                self._count(status.parts if status else ())
                return self._heard(said=self.said)
            case Piece():
                return self._heard(words=self._grown(event))

    def _whole(self, task: PeerTask) -> Heard:
        known, self._artifacts = frozenset(self._artifacts), {}
        self._size = self._others = 0
        self.state, self._status, self._history = task.state, task.status, task.history
        self._metadata.update(task.metadata)
        for n, one in enumerate(task.artifacts[:_MOST_ARTIFACTS]):
            key = one.id if one.id not in self._artifacts else f"#{n}"
            self._artifacts[key] = _Growing(one, list(one.parts))
            self._count(one.parts)
        new = [_text(one.parts) for one in task.artifacts if one.id not in known]
        return self._heard(words="".join(new), said=self.said)

    def _grown(self, piece: Piece) -> str:
        artifact, known = piece.artifact, self._artifacts.get(piece.artifact.id)
        self._count(artifact.parts)
        if known is not None and piece.append:
            known.append(artifact.parts)
        elif known is None and len(self._artifacts) >= _MOST_ARTIFACTS:
            raise TooMuch(f"The task {self.id} has more than {_MOST_ARTIFACTS} artifacts")
        else:
            self._artifacts[artifact.id] = _Growing.of(artifact)
        return _text(artifact.parts)

    def _count(self, parts: Sequence[Part]) -> None:
        self._others += sum(part.get("type") != "text" for part in parts)
        if self._others > _MOST_OTHERS:
            raise TooMuch(f"The task {self.id} has more than {_MOST_OTHERS} files and data")
        self._size += sum(map(_size, parts))
        if self._size > LARGEST:
            raise TooMuch(f"The task {self.id} is larger than {LARGEST} bytes")

    def _heard(self, *, words: str = "", said: str = "") -> Heard:
        return Heard(id=self.id, state=self.state, words=words, said=said)


@dataclass(slots=True)
class _Growing:
    """An artifact whose text may come in many small pieces: they are joined once."""

    artifact: TaskArtifact
    parts: list[Part] = field(default_factory=list["Part"])
    texts: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, artifact: TaskArtifact) -> _Growing:
        growing = cls(artifact)
        growing.append(artifact.parts)
        return growing

    def append(self, parts: Iterable[Part]) -> None:
        for part in parts:
            if set(part) == {"type", "text"}:
                self.texts.append(part["text"])
            else:
                self._join()
                self.parts.append(part)

    def whole(self) -> TaskArtifact:
        self._join()
        return replace(self.artifact, parts=tuple(self.parts))

    def _join(self) -> None:
        if self.texts:
            self.parts.append({"type": "text", "text": "".join(self.texts)})
            self.texts.clear()


def answer_of(task: PeerTask) -> TaskMessage | None:
    """Find what the agent said last: with the state, or, if it made nothing, in its history."""
    if task.status is not None and task.status.parts:
        return task.status
    last = task.history[-1] if task.history and not task.artifacts else None
    return last if last is not None and last.role is Role.AGENT else None


def _size(part: Part) -> int:
    """Say how large a part is, as far as that matters."""
    match part:
        case {"type": "text", "text": str(content)} | {"type": "file", "data": str(content)}:
            return len(content)
        case _:
            return len(json.dumps(dict(part)))


def _text(parts: Iterable[Part]) -> str:
    return "".join(part["text"] for part in parts if part.get("type") == "text")
