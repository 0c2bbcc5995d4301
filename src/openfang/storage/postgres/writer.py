"""The one writer of a node on Postgres: units in, their places out, each unit atomic and chained.

Whatever comes while a group is on its way is the next group: a lone caller waits for nobody, many
share one commit. A group that only appends records is one statement, and so its own transaction.
Units that change tables run as if nobody else did (`SERIALIZABLE`), as they do on SQLite; whoever
comes in between has the group tried again. The numbers of a node's records are its own: no node
waits for another one's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import field
from random import random
from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import HomeError
from openfang.core.values import dataclass
from openfang.storage.jobs import Job, blame, settle
from openfang.storage.ports import Unsure
from openfang.storage.postgres.attempt import Attempt, Refused
from openfang.storage.postgres.beating import Pulse
from openfang.storage.postgres.doubts import doubt
from openfang.storage.postgres.driver import connect
from openfang.storage.postgres.errors import explain, has_collided, is_lost, is_taken
from openfang.storage.postgres.fence import introduce
from openfang.storage.postgres.group import Group
from openfang.storage.postgres.notices import tell, words
from openfang.storage.units import GENESIS, Head, Unit, Written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.storage.postgres.address import Address
    from openfang.storage.postgres.doubts import Doubt
    from openfang.storage.processes import Process
    from openfang.storage.units import Fate, Line

MOST_UNITS: Final = 500
"""So many are committed together."""
PATIENCE: Final = 5.0
"""Seconds in which a server that is restarted has to come back."""
_COLLISIONS: Final = 100
_AT_ONCE: Final = 10
_PAUSE: Final = 0.05
_LOOK_AGAIN: Final = 1.0
_log = logging.getLogger("openfang.storage")
_HEAD: Final = "SELECT seq, hash FROM audit WHERE node = $1 ORDER BY seq DESC LIMIT 1"


@dataclass(slots=True, kw_only=True)
class PostgresWriter:
    """Owns one connection, on which this node writes. `digest` chains a line to the hash before."""

    address: Address
    node: str
    digest: Callable[[str, int, int, Line, bytes], bytes]
    now: Callable[[], int] = time.time_ns
    on_commit: Callable[[Head], None] | None = None
    pulse: Pulse = field(default_factory=Pulse)
    """Whoever is taken for dead by others writes nothing."""
    process: Process | None = None
    """Whose connection it is: so that whoever takes over from it can end it."""
    statements: int = field(init=False, default=0)
    """How many were sent to write, for whoever counts."""
    _head: Head = field(init=False, default=GENESIS)
    _connection: Any = field(init=False, default=None)
    _introduced: bool = field(init=False, default=False)
    _queue: deque[Job] = field(init=False, default_factory=deque["Job"])
    _work: asyncio.Task[None] | None = field(init=False, default=None)
    _closed: bool = field(init=False, default=False)
    _doubts: list[Doubt] = field(init=False, default_factory=list["Doubt"])
    _looking: asyncio.TimerHandle | None = field(init=False, default=None)

    @property
    def head(self) -> Head:
        """The last record this process knows of."""
        return self._head

    async def open(self) -> None:
        """Reach the server, and read where the chain ends."""
        self._head = await self._read_head(await self._connect())

    def commit(self, unit: Unit, fate: Fate | None = None) -> Written | None:
        """Nothing is committed without waiting for the server."""
        del unit, fate

    def submit(self, unit: Unit, fate: Fate | None = None) -> asyncio.Future[Written]:
        """Queue a unit. It is committed whether or not the caller goes on waiting."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Written] = loop.create_future()
        self._queue.append(Job(unit, done, fate))
        if self._work is None:
            self._work = loop.create_task(self._write_all())
        return done

    async def write(self, unit: Unit) -> Written:
        """Return where the unit's records stand once they would survive any `kill -9`."""
        return await self.submit(unit)

    async def drain(self) -> None:
        """Wait until everything queued so far is durable or has failed."""
        while self._work is not None:
            await asyncio.wait([self._work])

    def hang_up(self) -> None:
        """Throw the connection away, for it may be dead; the queue must have been drained."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def aclose(self) -> None:
        """Give the connection back; the queue must have been drained."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.close(timeout=1.0)
            except Exception:  # noqa: BLE001 - of the driver or of the network: it is gone anyway
                connection.terminate()

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write_some()
        finally:
            self._work = None

    async def _write_some(self) -> None:
        jobs = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_UNITS))]
        try:
            await self._settled(jobs)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            blame(jobs, error)
        settle(jobs)
        if self.on_commit:
            self.on_commit(self._head)
        await self._tell(words(jobs))

    async def _tell(self, told: Sequence[str]) -> None:
        """Tell all nodes, behind the commit: inside of it, one would wait for the other."""
        if not told:
            return
        self.statements += 1
        try:
            await tell(await self._connect(), told)
        except Exception as error:  # noqa: BLE001 - of the driver or of the network
            self._drop(error)
            said = explain(self.address, error).message
            _log.warning("The other nodes were not told of a change, and see it later: %s", said)

    async def _settled(self, jobs: list[Job]) -> None:
        """Commit a group, or say of it why not; a lost connection is opened again meanwhile."""
        group = Group(jobs, self.node, self.digest, self.now)
        until, before = time.monotonic() + PATIENCE, list[Attempt]()
        while True:
            attempt = Attempt(group, self.pulse.check)
            try:
                await self._try(attempt, before)
            except Exception as error:
                self._drop(error)
                again = is_lost(error) and attempt.may_be_repeated and not self._closed
                if not again or time.monotonic() > until:
                    raise self._given_up((*before, attempt), jobs, error) from error
                before.append(attempt)
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def _try(self, attempt: Attempt, before: list[Attempt]) -> None:
        """Commit all behind the head that we know; if that cannot be, each by itself."""
        self.pulse.check()
        connection = await self._connect()
        await self._see_doubts(connection)
        if await self._came_through(connection, before):
            return
        try:
            await self._at_once(connection, attempt)
        except Refused:
            # A unit cannot be applied, or somebody has written for this node: maybe we ourselves.
            if not await self._came_through(connection, before):
                await self._one_by_one(connection, attempt)

    async def _at_once(self, connection: Any, attempt: Attempt) -> None:  # noqa: ANN401 - the driver has no types
        await self._while_colliding(
            lambda: attempt.at_once(connection, self._head), connection, attempt, has_collided
        )

    async def _one_by_one(self, connection: Any, attempt: Attempt) -> None:  # noqa: ANN401 - as above
        await self._while_colliding(
            lambda: attempt.one_by_one(connection, self.address),
            connection,
            attempt,
            lambda error: has_collided(error) or is_taken(error),
        )

    async def _while_colliding(
        self,
        work: Callable[[], Awaitable[Head]],
        connection: Any,  # noqa: ANN401 - as above
        attempt: Attempt,
        collided: Callable[[Exception], bool],
    ) -> None:
        """Do it again as long as others come in between; the head moves only after the commit.

        The first few times at once, then with pauses: one of them may be slow.
        """
        for count in range(_COLLISIONS):
            try:
                self._head = await work()
            except Exception as error:
                await attempt.undo(connection, error)
                if not collided(error):
                    raise Refused from error
            else:
                return
            finally:
                self.statements += attempt.take_count()
            if count >= _AT_ONCE:
                await asyncio.sleep(_PAUSE * 2 * random())  # noqa: S311 - so that no two keep step
        raise HomeError(
            f"{self.address}: others changed the same for too long.", way_out="try it again"
        )

    async def _came_through(self, connection: Any, attempts: list[Attempt]) -> bool:  # noqa: ANN401 - as above
        """Whether one that broke was committed all the same: then its last record is there."""
        for attempt in attempts:
            if attempt.unsure and await attempt.is_there(connection):
                attempt.recall()
                self._head = max(self._head, attempt.behind)
                return True
        return False

    def _drop(self, error: Exception) -> None:
        """Throw a connection away that is of no use."""
        connection = self._connection
        if connection is not None and (is_lost(error) or connection.is_closed()):
            connection.terminate()
            self._connection = None

    def _given_up(
        self, attempts: Sequence[Attempt], jobs: Sequence[Job], error: Exception
    ) -> Exception:
        """Say why; what may have been kept all the same is found out later."""
        if (found := doubt(attempts, jobs)) is not None:
            self._doubts.append(found)
            self._look_later()
        if any(attempt.unsure for attempt in attempts):
            return Unsure(
                f"The connection to {self.address} broke while a change was being kept; whether it "
                "was is not known.",
                way_out="look whether it was made before you make it again",
            )
        said = error.__cause__ if isinstance(error, Refused) else error
        return explain(self.address, said if isinstance(said, Exception) else error)

    async def _see_doubts(self, connection: Any) -> None:  # noqa: ANN401 - as above
        for one in tuple(self._doubts):
            if await one.is_over(connection):
                self._doubts.remove(one)

    def _look_later(self) -> None:
        """Look again soon what became of what is in doubt, also if nobody writes meanwhile."""
        if self._looking is None:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(_LOOK_AGAIN, self._look)

    def _look(self) -> None:
        self._looking = None
        if self._doubts and not self._closed:
            self.submit(Unit()).add_done_callback(lambda done: done.exception())
            self._look_later()

    async def _connect(self) -> Any:  # noqa: ANN401 - as above
        if self._closed:
            raise HomeError("The home was closed meanwhile.", way_out="open it again")
        if self._connection is None or self._connection.is_closed():
            self._connection, self._introduced = await connect(self.address), False
        if self.process is not None and not self._introduced:
            await introduce(self._connection, self.process.writer)
            self._introduced = True
        return self._connection

    async def _read_head(self, connection: Any) -> Head:  # noqa: ANN401 - as above
        row = await connection.fetchrow(_HEAD, self.node)
        return Head(row[0], row[1]) if row else GENESIS
