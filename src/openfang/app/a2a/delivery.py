"""Push notifications on their way: each at least once, those to one receiver in order, on record.

One that is taken, or refused for good, is gone with the record that says so, and the next one of
that receiver is due. Neither the log nor the record has more of its URL than the host.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from anyio import to_thread

from openfang.app.a2a.notices import Notice, as_of
from openfang.app.posting import Letter, Post, Posted
from openfang.app.timers import Again, wait_before
from openfang.core.events import PUSH_DELIVERED, PUSH_GIVEN_UP, Record
from openfang.core.tasks import Push
from openfang.core.values import dataclass
from openfang.safety.urls import AddressRefused, parse_target
from openfang.storage.pushes import Unreadable, delete, told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from openfang.app.a2a.targets import Targets
    from openfang.core.ports import Clock
    from openfang.core.tasks import Task
    from openfang.storage.pushes import PushStore, Statement
    from openfang.storage.timers import Timer

Append: TypeAlias = "Callable[[Sequence[Record], tuple[Statement, ...]], Awaitable[Sequence[int]]]"
Write: TypeAlias = "Callable[[Task, str], bytes]"
"""Writes a task as a notification of a dialect has it."""
CONTENT_TYPES: Final = {"1.0": "application/a2a+json", "0.3": "application/json"}
_log = logging.getLogger("openfang.a2a")
_LONGEST_NS: Final = 24 * 3600 * 1_000_000_000
_CHANCE: Final = random.Random()  # noqa: S311 - it spreads load, it keeps no secret


@dataclass(frozen=True, slots=True)
class _Errand:
    """A notification, and whom it is for."""

    timer: Timer
    notice: Notice
    push: Push

    @property
    def host(self) -> str:
        return urlsplit(self.push.url).hostname or ""

    def record(self, event: str, reason: str) -> Record:
        payload = {
            "task": self.timer.subject,
            "push": self.push.id,
            "host": self.host,
            "n": self.notice.n,
            "state": self.notice.state.value,
            "tries": self.timer.tries + 1,
            "reason": reason,
        }
        return Record(
            event=event,
            level="info" if event == PUSH_DELIVERED else "warning",
            task_id=self.timer.subject,
            payload=payload,
            context={"caller": self.timer.party},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Sends notifications. `sign` makes what a receiver, by its origin, tells ours from others' by.

    Both are done in threads, for a task may be large.
    """

    store: PushStore
    find: Callable[[str], Awaitable[Task | None]]
    append: Append
    clock: Clock
    targets: Targets
    write: Write
    sign: Callable[[bytes, str], str]
    chance: random.Random = _CHANCE

    async def deliver(self, timer: Timer) -> Again | None:
        """Send one; return when it is to be tried again, if it is."""
        notice, task = Notice.of(timer.body), await self.find(timer.subject)
        lost = _Errand(timer, notice, Push(id=notice.push, task=timer.subject, url=""))
        if task is None:
            return await self._give_up(lost, "the task has made way for others")
        try:
            push = await self.store.get(timer.subject, notice.push)
        except Unreadable:
            return await self._give_up(lost, "who is told cannot be read")
        if push is None:
            await self.append((), delete(timer.subject, notice.push))
            return None
        return await self._deliver(_Errand(timer, notice, push), task)

    async def _deliver(self, errand: _Errand, task: Task) -> Again | None:
        timer = errand.timer
        if timer.tries and self.clock.time_ns() > errand.notice.at + _LONGEST_NS:
            return await self._give_up(errand, "nobody took it within 24 h")
        body = await self._written(errand, task)
        if body is None:
            return await self._give_up(errand, "it cannot be written")
        answer = await self._sent(errand.push, body)
        if answer.taken:
            return await self._settle(errand, PUSH_DELIVERED, answer.reason)
        if answer.hopeless(timer.tries):
            return await self._give_up(errand, answer.reason)
        wait = max(wait_before(timer.tries, self.chance), answer.wait)
        _log.info("%s: %s; it is tried again in %.0f s", _named(errand), answer.reason, wait)
        return Again(wait, timer.tries + 1)

    async def _written(self, errand: _Errand, task: Task) -> bytes | None:
        try:
            then = as_of(task, errand.notice)
            return await to_thread.run_sync(self.write, then, errand.push.dialect)
        except Exception:  # noqa: BLE001 - whatever it is, it would be the same the next time
            _log.exception("%s cannot be written", _named(errand))
            return None

    async def _give_up(self, errand: _Errand, reason: str) -> None:
        _log.warning("%s: %s; it is given up", _named(errand), reason)
        await self._settle(errand, PUSH_GIVEN_UP, reason)

    async def _settle(self, errand: _Errand, event: str, reason: str) -> None:
        """Put it on record, and let the next one go, in one unit."""
        statements = told(errand.timer, self.clock.time_ns())
        await self.append([errand.record(event, reason)], statements)

    async def _sent(self, push: Push, body: bytes) -> Posted:
        try:
            signature = await to_thread.run_sync(self.sign, body, _origin(push.url))
        except AddressRefused as refusal:
            return Posted(0, refusal.code, barred=True)
        letter = Letter(push.url, _headers(push, signature), body)
        return await Post(self.targets, self.clock).send(letter)


def _origin(url: str) -> str:
    target = parse_target(url)
    return f"{target.scheme}://{target.authority}"


def _headers(push: Push, signature: str) -> Mapping[str, str]:
    headers = {
        "Content-Type": CONTENT_TYPES[push.dialect],
        "X-A2A-Notification-Signature": signature,
    }
    if push.token:
        headers["X-A2A-Notification-Token"] = push.token
    if push.credentials:
        headers["Authorization"] = f"{push.scheme} {push.credentials}"
    return headers


def _named(errand: _Errand) -> str:
    task, n = errand.timer.subject, errand.notice.n
    return f"The push notification {n} about the task {task} to {errand.host}"
