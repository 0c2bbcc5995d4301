"""Who is told of what happens to tasks, and that they are: each change goes with its notices."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from openfang.app.a2a.delivery import CONTENT_TYPES
from openfang.app.a2a.notices import notice_body
from openfang.core.errors import Conflict, NotFound, OpenFangError, Rejected
from openfang.core.values import dataclass
from openfang.storage import pushes
from openfang.storage.pushes import MOST_PUSHES, Told
from openfang.storage.tasks import unchanged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping, Sequence

    from openfang.app.a2a.delivery import Append
    from openfang.app.a2a.targets import Targets
    from openfang.core.ports import Clock
    from openfang.core.tasks import Push, Task, TaskUpdate
    from openfang.storage.pushes import PushStore, Statement
    from openfang.storage.tasks import TaskStore

_LONGEST_ID: Final = 200
_LONGEST_WORD: Final = 8192
_ENDED_KEPT: Final = 1000
_SCHEME: Final = re.compile(r"\A[A-Za-z0-9!#$%&'*+.^_`|~-]{0,64}\Z")
_WORD: Final = re.compile(r"\A(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?\Z")


@dataclass(slots=True, kw_only=True)
class Pushes:
    """Who is told of which task. A change of a task that nobody is told of costs nothing."""

    store: PushStore
    tasks: TaskStore
    append: Append
    clock: Clock
    targets: Targets
    # Of each task who is told, each with its place.
    _told: dict[str, Mapping[str, str]] = field(
        init=False, default_factory=dict["str", "Mapping[str, str]"]
    )
    # A last change that could not be written is asked for again.
    _ended: dict[str, Mapping[str, str]] = field(
        init=False, default_factory=dict["str", "Mapping[str, str]"]
    )

    async def load(self) -> None:
        """Find out who is told of tasks that have not ended: once, before any of them changes."""
        for told in await self.store.of_unfinished():
            self._remember(told.task, told.push, told.place)

    async def check(self, push: Push) -> None:
        """Refuse what cannot be sent, or not to there."""
        _check_words(push)
        await self.targets.check(push.url)

    def put(self, push: Push) -> tuple[Statement, ...]:
        """Keep one that was checked, in the unit that its task begins in or changes.

        One without an id gets its task's.
        """
        named = _named(push)
        if len(self._told.get(named.task, {}).keys() - {named.id}) >= MOST_PUSHES:
            raise _full(named.task)
        self._remember(named.task, named.id, self.store.place(named))
        return self.store.put(named, self.clock.time_ns())

    @contextmanager
    def beside(self, push: Push) -> Generator[Callable[[], tuple[Statement, ...]]]:
        """Keep one that was checked with a change of its task, if that is made and written."""
        named = _named(push)
        new = named.id not in self._told.get(named.task, {})
        try:
            yield partial(self.put, named)
        except OpenFangError:
            if new:
                self._drop(named.task, named.id)
            raise

    async def set(self, push: Push) -> Push:
        """Let somebody be told of what happens to a task; one of the same id is replaced."""
        await self.check(push)
        named, task = _named(push), await self.tasks.get(push.task)
        if task is None:
            raise NotFound(f"No task {push.task}.", way_out="openfang a2a tasks")
        if task.state.final:
            await self._keep(named)
        else:
            await self._begin(named, task)
        return named

    async def _begin(self, push: Push, task: Task) -> None:
        """Keep it, and miss nothing that happens to the task meanwhile, at whichever node."""
        new, place = push.id not in self._told.get(push.task, {}), self.store.place(push)
        self._remember(push.task, push.id, place)
        try:
            last = await self._kept_before(push, task)
        except OpenFangError:
            if new:
                self._drop(push.task, push.id)
            raise
        if last is None:
            return
        self.forget(push.task)
        if last.state.final and push.id not in self._ended.get(last.id, {}):
            # Its end was on its way before.
            await self.append((), _notices(last, {push.id: place}, last.version, last.changed_at))

    async def _kept_before(self, push: Push, task: Task) -> Task | None:
        """Keep it before the next change of its task; return that if it was the last one."""
        while True:
            try:
                await self._keep(push, () if task.state.final else (unchanged(task),))
            except Rejected:
                now = await self.tasks.get(push.task)
                if now is None or now.version == task.version:
                    raise
                task = now
            else:
                return task if task.state.final else None

    async def _keep(self, push: Push, guards: Sequence[Statement] = ()) -> None:
        try:
            await self.append((), (*guards, *self.store.put(push, self.clock.time_ns())))
        except Conflict:
            raise _full(push.task) from None

    async def of(self, task_id: str) -> Sequence[Push]:
        """List who is told of a task."""
        return await self.store.of(task_id)

    async def delete(self, task_id: str, push_id: str) -> None:
        """Tell somebody no longer; one that is not there is no error."""
        await self.append((), pushes.delete(task_id, push_id))
        self._drop(task_id, push_id)

    def told_of(self, task_id: str) -> Collection[str]:
        """Name who is told of a task, as it is known here."""
        return {**self._ended.get(task_id, {}), **self._told.get(task_id, {})}.keys()

    async def look_at(self, task_id: str) -> bool:
        """Read again who is told of a task; whether that is another than was known."""
        before = set(self.told_of(task_id))
        found = {one.push: one.place for one in await self.store.told_of(task_id)}
        self._ended.pop(task_id, None)
        if found:
            self._told[task_id] = found
        else:
            self.forget(task_id)
        return before != found.keys()

    def forget(self, task_id: str) -> None:
        """Tell nobody of a task that did not come to be."""
        self._told.pop(task_id, None)

    def outbox(self, task: Task, update: TaskUpdate) -> tuple[Statement, ...]:
        """Make the notices of a change, for the unit that it is written in."""
        told = {**self._ended.get(task.id, {}), **self._told.get(task.id, {})}
        if not told or not update.n:
            return ()
        if task.state.final:
            self._end(task.id, told)
        return _notices(task, told, update.n, update.at)

    def _remember(self, task_id: str, push_id: str, place: str) -> None:
        self._told[task_id] = {**self._told.get(task_id, {}), push_id: place}

    def _drop(self, task_id: str, push_id: str) -> None:
        told = self._told.get(task_id, {})
        if left := {push: place for push, place in told.items() if push != push_id}:
            self._told[task_id] = left
        else:
            self.forget(task_id)

    def _end(self, task_id: str, told: Mapping[str, str]) -> None:
        self._told.pop(task_id, None)
        self._ended[task_id] = told
        if len(self._ended) > _ENDED_KEPT:
            del self._ended[next(iter(self._ended))]


def _notices(task: Task, told: Mapping[str, str], n: int, at: int) -> tuple[Statement, ...]:
    body, for_it = notice_body(task), {"task": task.id, "party": task.caller}
    return tuple(
        pushes.notify(Told(push=push, place=place, **for_it), n, at, body)
        for push, place in sorted(told.items())
    )


def _named(push: Push) -> Push:
    return push if push.id else replace(push, id=push.task)


def _check_words(push: Push) -> None:
    words = (push.token, push.credentials)
    if not (len(push.id) <= _LONGEST_ID and push.id.isprintable()):
        raise _unsendable("its id is too long, or has characters that cannot be shown")
    if any(len(word) > _LONGEST_WORD or not _WORD.match(word) for word in words):
        raise _unsendable("its token and credentials have to fit in a header")
    if not _SCHEME.match(push.scheme) or (push.credentials and not push.scheme):
        raise _unsendable("its credentials need the name of a scheme")
    if push.dialect not in CONTENT_TYPES:
        raise _unsendable(f"nobody is notified in the dialect {push.dialect}")


def _unsendable(why: str) -> Rejected:
    return Rejected(
        f"This push notification cannot be sent: {why}.",
        status=400,
        rule="push_config",
        way_out="send a configuration without it",
    )


def _full(task_id: str) -> Rejected:
    return Rejected(
        f"{MOST_PUSHES} are told of the task {task_id} already.",
        status=400,
        rule="push_limit",
        way_out="delete one of them first",
    )
