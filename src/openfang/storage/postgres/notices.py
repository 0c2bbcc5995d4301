"""Words to all nodes about what has changed: told behind a commit, heard on one connection.

A word may be lost together with a connection. Whoever listens is told after that that anything may
have changed, and looks by themselves now and then in any case: words only make it sooner.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.storage.postgres.address import CONNECT_SECONDS
from openfang.storage.postgres.driver import connect
from openfang.storage.postgres.errors import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openfang.storage.jobs import Job
    from openfang.storage.ports import Hear
    from openfang.storage.postgres.address import Address
    from openfang.storage.postgres.pool import Pool

CHANNEL: Final = "openfang"
_TELL: Final = "SELECT pg_notify('openfang', word) FROM unnest($1::text[]) AS word"
_LONGEST: Final = 7_000
"""In bytes; a server carries up to 8,000."""
_MOST_WAITING: Final = 1_000
_PAUSE: Final = 0.5
_PROBE: Final = 10.0
"""After so many seconds of silence it is seen whether the connection is still one."""
_log = logging.getLogger("openfang.storage")


def words(jobs: Iterable[Job]) -> Sequence[str]:
    """What is to be told of a group, each once; a unit that failed has changed nothing."""
    notices = (notice for job in jobs if job.error is None for notice in job.unit.notices)
    return [*dict.fromkeys(_word(topic, subject) for topic, subject in notices)]


def _word(topic: str, subject: str) -> str:
    """One word. Of a subject that the server would not carry it tells that there is one."""
    fits = subject.isprintable() and len(subject.encode()) <= _LONGEST
    return f"{topic} {subject if fits else ''}"


async def tell(connection: Any, told: Sequence[str]) -> None:  # noqa: ANN401 - the driver has no types
    """Tell all of them by one statement: a transaction of its own, which changes no table."""
    await connection.execute(_TELL, told)


@dataclass(slots=True)
class Voice:
    """Tells what no unit has changed, in order; what waits for the server is told together."""

    pool: Pool
    _waiting: list[str] = field(init=False, default_factory=list[str])
    _work: asyncio.Task[None] | None = field(init=False, default=None)

    def tell(self, topic: str, subject: str) -> None:
        """Have it told; who is too far behind tells nothing more for now."""
        if len(self._waiting) >= _MOST_WAITING:
            return
        self._waiting.append(_word(topic, subject))
        if self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._tell_all())

    async def aclose(self) -> None:
        """Tell no more."""
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
            await asyncio.wait([work])

    async def _tell_all(self) -> None:
        try:
            while self._waiting:
                told, self._waiting = self._waiting, []
                async with self.pool.connection() as connection:
                    await tell(connection, told)
        except HomeError as error:
            _log.warning("What was said is not told to other nodes: %s", error.message)
        finally:
            self._work = None


@dataclass(slots=True)
class Ear:
    """Hears what any node tells, this one too, from the first who wants to hear until closed."""

    address: Address
    _hears: dict[str, list[Hear]] = field(init=False, default_factory=dict[str, "list[Hear]"])
    _work: asyncio.Task[None] | None = field(init=False, default=None)
    _listening: bool = field(init=False, default=False)

    def on(self, topic: str, hear: Hear) -> None:
        """Let somebody hear of a topic; of all of it, as soon as it is listened to."""
        loop = asyncio.get_running_loop()
        self._hears.setdefault(topic, []).append(hear)
        if self._work is None:
            self._work = loop.create_task(self._listen())
        elif self._listening:
            loop.call_soon(_told, hear, "")

    async def aclose(self) -> None:
        """Listen no more."""
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
            await asyncio.wait([work])

    async def _listen(self) -> None:
        silent = False
        while True:
            try:
                await self._until_broken(self._tell_all)
                silent = False
            except Exception as error:  # noqa: BLE001 - of the driver or of the network: once more
                if not silent:
                    said = explain(self.address, error).message
                    _log.warning("What other nodes tell is not heard for now: %s", said)
                silent = True
            await asyncio.sleep(_PAUSE)

    async def _until_broken(self, opened: Callable[[], None]) -> None:
        connection, broken = await connect(self.address), asyncio.Event()

        def over(_: object) -> None:
            broken.set()

        try:
            connection.add_termination_listener(over)
            await connection.add_listener(CHANNEL, self._heard)
            self._listening = True
            opened()
            while not await _within(_PROBE, broken):
                await connection.execute("SELECT 1", timeout=CONNECT_SECONDS)
        finally:
            self._listening = False
            await _closed(connection)

    def _heard(self, _connection: object, _process: int, _channel: str, word: str) -> None:
        topic, _, subject = word.partition(" ")
        for hear in self._hears.get(topic, ()):
            _told(hear, subject)

    def _tell_all(self) -> None:
        """Whatever was told before is not known: anything may have changed."""
        for hears in self._hears.values():
            for hear in hears:
                _told(hear, "")


def _told(hear: Hear, subject: str) -> None:
    try:
        hear(subject)
    except Exception:  # noqa: BLE001 - one who fails keeps nobody else from hearing
        _log.exception("What another node told was not taken up")


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _closed(connection: Any) -> None:  # noqa: ANN401 - as above
    try:
        await connection.close(timeout=1.0)
    except Exception:  # noqa: BLE001 - of the driver or of the network: it is gone in any case
        connection.terminate()
