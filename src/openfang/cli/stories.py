"""How a task is shown while it goes on: its words as they come, its states, its end."""

from __future__ import annotations

import sys
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.cli.errors import ERROR, FAILED, PARKED, REFUSED
from openfang.cli.output import clean, is_terminal, note, one_line
from openfang.core.tasks import Role, Spoken, Task, TaskState, TaskUpdate
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.core.session import Session
    from openfang.core.tasks import Seen, TaskMessage

_CODES: Final = {
    TaskState.FAILED: FAILED,
    TaskState.REJECTED: REFUSED,
    TaskState.CANCELED: ERROR,
    TaskState.INPUT_REQUIRED: PARKED,
    TaskState.AUTH_REQUIRED: PARKED,
}


def code_of(task: Task) -> int:
    """The exit code of a task."""
    return _CODES.get(task.state, 0)


async def settled(home: Session, begun: Task, *, silent: bool) -> Task:
    """Wait for a task. What it asks is put to a person who is there, else it is left waiting."""
    story, task = Story(silent=silent), begun
    async with aclosing(home.watch_task(begun.id)) as watched:
        async for seen in watched:
            story.tell(seen)
            task = task_of(seen)
            if task.state.waiting and not is_spoken(seen):
                answer = None if silent else await _asked()
                if answer is None:
                    story.hint(task)
                    break
                await home.send_task(task.agent, answer, task=task.id)
    return task


def is_spoken(seen: Seen) -> bool:
    """Whether only a piece of an answer is told."""
    return isinstance(seen, TaskUpdate) and isinstance(seen.what, Spoken)


def task_of(seen: Seen) -> Task:
    """The task that something is told of."""
    return seen if isinstance(seen, Task) else seen.task


async def _asked() -> str | None:
    """Wait for a line that says anything; none if nobody is there, or leaves."""
    line: str | None = ""
    while line == "":
        line = await to_thread.run_sync(_typed, abandon_on_cancel=True)
    return line


def _typed() -> str | None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        return None
    try:
        return input("> ").strip()
    except EOFError:
        return None


@dataclass(slots=True)
class Story:
    """One task as it is told: a terminal gets its words as they come, a pipe the whole answer."""

    silent: bool = False
    _said: str = field(default="", init=False)

    def tell(self, seen: Seen) -> None:
        """Show what is told."""
        if self.silent:
            return
        if isinstance(seen, Task):
            self._begin(seen)
        elif isinstance(seen.what, Spoken):
            self._words(seen.what)
        else:
            self._state(seen.task)

    def hint(self, task: Task) -> None:
        """Say how a task is answered."""
        if not self.silent:
            note(f"answer it: openfang a2a send {task.agent} ANSWER --task {task.id}")

    def _begin(self, task: Task) -> None:
        who = f"{task.id} of {one_line(task.agent)}"
        if task.state.resting:
            note(who)
            self._state(task)
        else:
            note(f"{who}: {task.state.value}")

    def _words(self, spoken: Spoken) -> None:
        if not is_terminal(sys.stdout):
            return
        if spoken.first:
            self._end_line()
        self._said = spoken.text if spoken.first else self._said + spoken.text
        _write(clean(spoken.text))

    def _state(self, task: Task) -> None:
        if task.state is TaskState.COMPLETED:
            self._answer(task)
        self._end_line()
        self._said = ""
        note(_line_of(task))

    def _answer(self, task: Task) -> None:
        """Show what is missing of the answer, and name what was made."""
        message = answer_of(task)
        whole = message.text if message else ""
        if self._said.strip() != whole.strip():
            rest = whole[len(self._said) :] if whole.startswith(self._said) else f"\n{whole}"
            _write(clean(rest) if is_terminal(sys.stdout) else rest)
            self._said = rest or self._said
        self._end_line()
        self._said = ""
        for made in task.artifacts:
            note(f"made {one_line(made.name)}")

    def _end_line(self) -> None:
        if self._said and not self._said.endswith("\n"):
            _write("\n")


def answer_of(task: Task) -> TaskMessage | None:
    """What the agent said last, if it did."""
    last = task.history[-1] if task.history else None
    return last if last is not None and last.role is Role.AGENT else None


def _line_of(task: Task) -> str:
    why = one_line(task.status.text) if task.status else ""
    return f"{task.state.value}: {why}" if why else task.state.value


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
