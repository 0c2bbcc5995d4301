"""One client for agents of every dialect: find, send, watch, read, cancel.

Whatever way an agent answers, a task comes back when it has ended or waits for us.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio import to_thread

from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.sources.a2a.following import Following, TooMuch
from openfang.sources.a2a.sdk import load
from openfang.sources.a2a.seed import Seed
from openfang.sources.a2a.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.core.tasks import Sent
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.dialect import Dialect
    from openfang.sources.a2a.following import Event, Heard, PeerTask
    from openfang.sources.a2a.wire import Wire

Listens: TypeAlias = "Callable[[Heard], None]"
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 2.0
_WRONG: Final = 3
_ABSENT_SECONDS: Final = 60.0
NO_HEADERS: Final[Mapping[str, str]] = {}


def _nobody(heard: Heard) -> None:
    del heard


async def open_client(wire: Wire, card: Card, *, absent: float = _ABSENT_SECONDS) -> Client:
    """Make a client for the agent of this card. Raises `SourceFailed` if none can be."""
    if card.of_the_seed:
        return Client(Seed(wire, card), wire.reached.url, absent=absent)
    modern = await to_thread.run_sync(lambda: load()(wire, card))  # a card may be large
    return Client(modern, wire.reached.url, absent=absent)


class Client:
    """Speaks with one agent. Raises `SourceFailed`.

    One that has a task of ours and is gone is waited for, `absent` seconds long. `url` is where it
    was found.
    """

    def __init__(self, dialect: Dialect, url: str = "", *, absent: float) -> None:
        self.url = url
        self._dialect = dialect
        self._absent = absent

    async def send(
        self, sent: Sent, listen: Listens = _nobody, headers: Mapping[str, str] = NO_HEADERS
    ) -> PeerTask:
        """Send a message, and wait until the task has ended or waits for us."""
        following = Following(id=sent.task, context=sent.context)
        hear = _hearing(following, listen)
        try:
            await self._dialect.send(sent, headers, hear)
        except SourceFailed as failed:
            if not following.begun or isinstance(failed, TooMuch):
                raise
        return await self._settled(following, listen, headers)

    async def subscribe(
        self, task_id: str, listen: Listens = _nobody, headers: Mapping[str, str] = NO_HEADERS
    ) -> PeerTask:
        """Come back to a task, and wait until it has ended or waits for us."""
        following = Following(id=task_id)
        listen(following.hear(await self._dialect.get(task_id, headers)))
        if not following.resting:
            with suppress(SourceFailed):  # no stream, or none any more: it is asked for then
                await self._dialect.watch(task_id, headers, _hearing(following, listen))
        return await self._settled(following, listen, headers)

    async def get(self, task_id: str, headers: Mapping[str, str] = NO_HEADERS) -> PeerTask:
        """Read a task as it is."""
        return await self._dialect.get(task_id, headers)

    async def cancel(self, task_id: str, headers: Mapping[str, str] = NO_HEADERS) -> PeerTask:
        """End a task."""
        return await self._dialect.cancel(task_id, headers)

    async def _settled(
        self, following: Following, listen: Listens, headers: Mapping[str, str]
    ) -> PeerTask:
        """Ask for the task until it rests, a little less often each time."""
        pause, patience = _FIRST_PAUSE, _Patience(self._absent)
        while following.id and not following.resting:
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                task = await self._dialect.get(following.id, headers)
            except SourceFailed as failed:
                pause = max(pause, patience.lose(failed, following.id))
            else:
                patience = _Patience(self._absent)
                _tell(following, task, listen)
        if not following.resting:
            raise SourceFailed("The agent answered with neither a task nor a message")
        if following.silent and following.id:  # what it said may stand in its history alone
            following.hear(await self._dialect.get(following.id, headers))
        return following.task


@dataclass(slots=True)
class _Patience:
    """What is left of it with an agent that has not told of a task lately."""

    absent: float
    _wrong: int = 0
    _since: float | None = None

    def lose(self, failed: SourceFailed, task_id: str) -> float:
        """Bear one more failure for as long as it asks for, or raise what is to be said of it."""
        if not isinstance(failed, Unreachable):
            self._wrong += 1
            if self._wrong == _WRONG:
                raise _left(task_id, "does not tell of it", failed) from failed
            return 0.0
        now = anyio.current_time()
        self._since = now if self._since is None else self._since
        if now - self._since >= self.absent:
            how = f"has told nothing of it for {self.absent:g} s"
            raise _left(task_id, how, failed) from failed
        return failed.wait


def _left(task_id: str, how: str, failed: SourceFailed) -> SourceFailed:
    """Name the task: it is still there for who comes back."""
    return SourceFailed(
        f"It has the task {task_id}, and {how}: {failed.message}",
        way_out=f"call it again later with task = '{task_id}'",
    )


def _hearing(following: Following, listen: Listens) -> Callable[[Event], None]:
    return lambda event: listen(following.hear(event))


def _tell(following: Following, task: PeerTask, listen: Listens) -> None:
    """Tell what was asked for, if it is another state or another word than before."""
    before = following.state, following.said
    heard = following.hear(task)
    if heard.words or (following.state, following.said) != before:
        listen(heard)
