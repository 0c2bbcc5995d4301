"""The one writer: units in, their places out, each unit atomic and its records chained.

A lone caller commits at once (`commit`). Callers that come side by side are gathered in one turn of
the event loop and share one commit (`submit`). Whatever could stall the loop goes through a thread:
a database that another process holds, a commit that must reach the disk, a checkpoint of the WAL.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from openfang.core.errors import Conflict
from openfang.core.values import dataclass
from openfang.storage.database import BUSY_SECONDS, Database, explain, is_busy
from openfang.storage.jobs import Job, blame, chained, settle
from openfang.storage.units import GENESIS, Fate, Head, Line, Unit, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

INLINE_UNITS = 64
"""A larger group goes to the thread, so that the loop stays free."""
INLINE_BYTES = 1_000_000
"""So does a unit that stores more than this."""
COMMITS_PER_CHECKPOINT = 2_000
BYTES_PER_CHECKPOINT = 32_000_000
"""Whichever comes first: else the file beside the database would grow with every large unit."""
_VALUES = 10
_ROW = f"({','.join('?' * _VALUES)})"
_ROWS_AT_ONCE = 500
_VALUES_AT_ONCE = _ROWS_AT_ONCE * _VALUES
_HEAD = "SELECT seq, hash FROM audit WHERE node = ? ORDER BY seq DESC LIMIT 1"


@dataclass(slots=True, kw_only=True)
class Writer:
    """Owns the write side of a database. `digest` chains a line to the hash before it.

    `database` is the connection of whoever reads on this event loop, if they share it: what is
    written on it they need not read from the file again. Who gave it gives it back.
    """

    path: Path
    node: str
    digest: Callable[[str, int, int, Line, bytes], bytes]
    durable: bool = False
    now: Callable[[], int] = time.time_ns
    on_commit: Callable[[Head], None] | None = None
    database: Database | None = None
    _database: Database = field(init=False)
    _slow: Database | None = field(init=False, default=None)
    _head: Head = field(init=False, default=GENESIS)
    _file: int = field(init=False, default=-1)
    _queue: deque[Job] = field(init=False, default_factory=deque["Job"])
    _scheduled: bool = field(init=False, default=False)
    _thread: ThreadPoolExecutor | None = field(init=False, default=None)
    _thread_busy: bool = field(init=False, default=False)
    _commits: int = field(init=False, default=0)
    _bytes: int = field(init=False, default=0)
    _inserts: dict[int, str] = field(init=False, default_factory=dict[int, str])

    def __post_init__(self) -> None:
        self._database = self.database or Database(self.path, durable=self.durable)
        self._database.patience(0)
        self._head = self.read_head(self._database)
        # O_PATH: closing any other kind of handle would drop SQLite's locks on the file.
        self._file = os.open(self.path, os.O_PATH | os.O_CLOEXEC)

    @property
    def head(self) -> Head:
        """The last record this process knows of."""
        return self._head

    @property
    def idle(self) -> bool:
        """Whether a lone caller may commit at once."""
        return not (self._queue or self._thread_busy or self.durable)

    def read_head(self, database: Database) -> Head:
        """Ask the database where the chain ends."""
        rows = database.read_now(_HEAD, (self.node,))
        return Head(rows[0][0], rows[0][1]) if rows else GENESIS

    def commit(self, unit: Unit, fate: Fate | None = None) -> Written | None:
        """Commit at once if nobody is in the way; None means: submit it instead."""
        if not self.idle:
            return None
        job = Job(unit, fate=fate)
        if job.weight > INLINE_BYTES or not self._commit_now([job]):
            return None
        job.settle()
        if job.error:
            raise job.error
        return job.written

    def submit(self, unit: Unit, fate: Fate | None = None) -> asyncio.Future[Written]:
        """Queue a unit. It is committed whether or not the caller goes on waiting."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Written] = loop.create_future()
        self._queue.append(Job(unit, done, fate))
        if not self._scheduled and not self._thread_busy:
            self._scheduled = True
            loop.call_soon(self._flush)
        return done

    async def write(self, unit: Unit) -> Written:
        """Return where the unit's records stand once they would survive `kill -9`."""
        written = self.commit(unit)
        return await self.submit(unit) if written is None else written

    def write_blocking(self, unit: Unit) -> Written:
        """Commit from outside an event loop, waiting for other processes if need be."""
        job = Job(unit)
        self._database.patience(BUSY_SECONDS)
        try:
            self._commit_now([job], give_up=True)
        finally:
            self._database.patience(0)
        if job.error:
            raise job.error
        return job.written

    def _flush(self) -> None:
        self._scheduled = False
        if self._thread_busy:
            return
        jobs = list(self._queue)
        self._queue.clear()
        if not jobs:
            return
        try:
            done = self._may_commit_now(jobs) and self._commit_now(jobs)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
            blame(jobs, error)
            done = True
        if done:
            settle(jobs)
        else:
            self._hand_over(jobs)

    def _may_commit_now(self, jobs: list[Job]) -> bool:
        few = len(jobs) <= INLINE_UNITS and not self.durable
        return few and all(job.weight <= INLINE_BYTES for job in jobs)

    def _commit_now(self, jobs: list[Job], *, give_up: bool = False) -> bool:
        """Commit on this thread. False when another connection holds the lock."""
        try:
            self._transact(self._database.connection, jobs)
        except sqlite3.Error as error:
            if not give_up and is_busy(error):
                return False
            self._fail(jobs, error)
        self._after_commit(jobs)
        return True

    def _after_commit(self, jobs: list[Job]) -> None:
        self._commits += 1
        for job in jobs:
            self._bytes += job.weight
        if self._commits >= COMMITS_PER_CHECKPOINT or self._bytes >= BYTES_PER_CHECKPOINT:
            self._commits = self._bytes = 0
            self._checkpoint_soon()
        if self.on_commit:
            self.on_commit(self._head)

    def _fail(self, jobs: list[Job], error: sqlite3.Error) -> None:
        reason = explain(self.path, error)
        for job in jobs:
            job.error = reason

    def _transact(self, connection: sqlite3.Connection, jobs: list[Job]) -> None:
        """Commit all or raise; the head moves only after the commit."""
        self._check_file()
        try:
            self._head = self._at_once(connection, jobs)
        except sqlite3.Error as error:
            if is_busy(error):
                raise
            # A unit cannot be applied, or another process has written since.
            self._head = self._one_by_one(connection, jobs)

    def _at_once(self, connection: sqlite3.Connection, jobs: list[Job]) -> Head:
        """Commit all of them behind the head that we know, as if nothing could go wrong."""
        rows, head = self._chained(jobs, self._head)
        statements = [statement for job in jobs for statement in job.unit.statements]
        if not statements and len(rows) <= _VALUES_AT_ONCE:
            self._insert(connection, rows)  # one statement is its own transaction
            return head
        with _transaction(connection):
            for sql, parameters in statements:
                connection.execute(sql, parameters)
            self._insert(connection, rows)
        return head

    def _one_by_one(self, connection: sqlite3.Connection, jobs: list[Job]) -> Head:
        """Commit those that can be, behind the head that there is."""
        with _transaction(connection):
            row = connection.execute(_HEAD, (self.node,)).fetchone()
            head = Head(row[0], row[1]) if row else GENESIS
            for job in jobs:
                head = self._apply(connection, job, head)
            return head

    def _check_file(self) -> None:
        """SQLite goes on writing into a file that was deleted: nothing of it would survive."""
        if self._file < 0:
            raise sqlite3.ProgrammingError("Cannot operate on a closed database")
        if os.fstat(self._file).st_nlink == 0:
            raise sqlite3.OperationalError("unable to open: it was removed or replaced meanwhile")

    def _apply(self, connection: sqlite3.Connection, job: Job, head: Head) -> Head:
        """Apply one unit inside the group; a unit that cannot be applied fails alone."""
        connection.execute("SAVEPOINT unit")
        try:
            for sql, parameters in job.unit.statements:
                connection.execute(sql, parameters)
            rows, behind = self._chained([job], head)
            self._insert(connection, rows)
            head = behind
        except sqlite3.IntegrityError as error:
            job.error = Conflict(f"The database refused the change: {error}.")
        except sqlite3.Error as error:
            job.error = explain(self.path, error)
        if job.error:
            connection.execute("ROLLBACK TO unit")
        connection.execute("RELEASE unit")
        return head

    def _chained(self, jobs: list[Job], head: Head) -> tuple[list[Any], Head]:
        """The values of all their rows, one after the other, and the head behind them."""
        return chained(jobs, head, node=self.node, digest=self.digest, at=self.now())

    def _insert(self, connection: sqlite3.Connection, rows: list[Any]) -> None:
        for start in range(0, len(rows), _VALUES_AT_ONCE):
            part = rows[start : start + _VALUES_AT_ONCE]
            connection.execute(self._insert_sql(len(part) // _VALUES), part)

    def _insert_sql(self, count: int) -> str:
        sql = self._inserts.get(count)
        if sql is None:
            sql = "INSERT INTO audit VALUES " + ",".join([_ROW] * count)  # noqa: S608 - only marks
            self._inserts[count] = sql
        return sql

    def _hand_over(self, jobs: list[Job]) -> None:
        self._thread_busy = True
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool(), self._commit_slowly, jobs)
        future.add_done_callback(lambda done: self._handed_back(jobs, done))

    def _pool(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "openfang-writer")
        return self._thread

    def _connection(self) -> sqlite3.Connection:
        if self._slow is None:
            self._slow = Database(self.path, patience=BUSY_SECONDS, durable=self.durable)
        return self._slow.connection

    def _commit_slowly(self, jobs: list[Job]) -> None:
        try:
            self._transact(self._connection(), jobs)
        except sqlite3.Error as error:
            self._fail(jobs, error)

    def _handed_back(self, jobs: list[Job], done: asyncio.Future[None]) -> None:
        self._thread_busy = False
        error = done.exception()
        if isinstance(error, Exception):
            blame(jobs, error)
        settle(jobs)
        self._after_commit(jobs)
        if self._queue:
            self._flush()

    def _checkpoint_soon(self) -> None:
        """Copy the WAL back in the thread; units that come meanwhile wait for it there."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._checkpoint()
            return
        if self._thread_busy:
            return
        self._thread_busy = True
        future = loop.run_in_executor(self._pool(), self._checkpoint)
        future.add_done_callback(lambda done: self._handed_back([], done))

    def _checkpoint(self) -> None:
        self._connection().execute("PRAGMA wal_checkpoint(PASSIVE)")

    async def drain(self) -> None:
        """Wait until everything queued so far is durable or has failed."""
        while self._queue or self._thread_busy:
            await asyncio.wait([self.submit(Unit())])

    def close(self) -> None:
        """Give the files back; the queue must have been drained."""
        if self._thread is not None:
            self._thread.shutdown()
        if self._slow is not None:
            self._slow.close()
        if self.database is None:
            self._database.close()
        file, self._file = self._file, -1
        os.close(file)

    async def aclose(self) -> None:
        """Do the same, as every writer can be told."""
        self.close()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Commit what is done in here, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
