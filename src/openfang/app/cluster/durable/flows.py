"""DBOS in this process: the one module that imports it. All of it blocks: it is for threads.

It has an event loop and threads of its own, and none of ours: a workflow there only waits for what
is done here. Nothing of it reaches out: it is given neither a Conductor nor a collector.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import psycopg
import sqlalchemy
from dbos import DBOS

from openfang.app.cluster.durable.bell import Bell
from openfang.app.cluster.durable.queues import RUN, TASK
from openfang.core.values import dataclass
from openfang.storage.postgres.address import CONNECT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from concurrent.futures import Future

    from openfang.app.cluster.durable.queues import Queue
    from openfang.storage.postgres.address import Address

Take: TypeAlias = "Callable[[str, dict[str, Any] | None], Future[None]]"
APPLICATION: Final = "openfang"
VERSION: Final = "1"
"""Of what a workflow is, and not of this program: nodes of any version go on with each other's."""
_UNUSED: Final = "postgresql://server/database"
"""DBOS wants an address beside the engine that it is given."""
_POOL: Final = 3
_MORE: Final = 5
_NOTICES_LOSS: Final[dict[str, Any]] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A connection whose other end is gone ends by itself: nothing here waits for an answer in time."""
_MOST_TRIES: Final = 20
_SAME_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 10.0
_GONE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.01
_log = logging.getLogger("openfang.durable")
_one_at_a_time = threading.Lock()
"""There is one DBOS in a process: who begins while the last one ends waits, or is tried again."""
_takers: list[Flows] = []


@DBOS.workflow(name=TASK, max_recovery_attempts=_MOST_TRIES)
async def _task(task_id: str, recipe: dict[str, Any]) -> None:
    """Wait until the work on a task is done."""
    await _done(task_id, recipe)


@DBOS.workflow(name=RUN, max_recovery_attempts=_MOST_TRIES)
async def _run(run: str, recipe: None) -> None:
    """Wait until a run has ended that somebody here goes on with."""
    await _done(run, recipe)


async def _done(name: str, recipe: dict[str, Any] | None) -> None:
    """Wait until it is done; who is called off leaves it to others."""
    if not _takers:
        raise asyncio.CancelledError
    await asyncio.wrap_future(_takers[-1].take(name, recipe))


@dataclass(slots=True)
class Flows:
    """Takes workflows off the queues as `executor`, and hands each to `take`."""

    address: Address
    executor: str
    take: Take
    bell: Bell = field(default_factory=Bell)
    _engine: Any = field(init=False, default=None)
    _dbos: Any = field(init=False, default=None)

    def launch(self) -> None:
        """Make the tables if they are not there, and begin to take."""
        if not _one_at_a_time.acquire(timeout=_GONE_SECONDS):
            raise TimeoutError("What this process had to do with queues before has not ended yet.")
        try:
            self._launch()
        finally:
            _one_at_a_time.release()

    def _launch(self) -> None:
        _speak_by_ours()
        _takers.append(self)
        self._engine = sqlalchemy.create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            pool_size=_POOL,
            max_overflow=_MORE,
            pool_pre_ping=True,
        )
        try:
            self._dbos = DBOS(
                config={
                    "name": APPLICATION,
                    "system_database_url": _UNUSED,
                    "system_database_engine": self._engine,
                    "executor_id": self.executor,
                    "application_version": VERSION,
                    "enable_otlp": False,
                    "use_listen_notify": False,
                    "log_level": "WARNING",
                }
            )
            DBOS.launch()
            self.bell.hang(self._dbos.background_thread_stop_events)
        except BaseException:
            self._leave()
            raise

    def _connect(self) -> Any:  # noqa: ANN401 - of a driver that SQLAlchemy knows
        settings = {**self.address.settings, "application_name": "openfang/tasks"}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        return psycopg.connect(
            self.address.url, connect_timeout=int(CONNECT_SECONDS), options=options, **_NOTICES_LOSS
        )

    def register(self, queue: Queue) -> None:
        """Make a queue known to all nodes, with its bounds as they are now."""
        DBOS.register_queue(
            queue.name,
            worker_concurrency=queue.on_a_node,
            global_concurrency=queue.at_once,
            partition_concurrency=queue.of_a_caller,
            polling_interval_sec=queue.seconds,
            on_conflict="always_update",
        )

    def recover(self, executors: Collection[str]) -> int:
        """Put back on their queues what these had taken: they are gone."""
        return len(recover(sorted(executors)))

    def forget(self, ids: Sequence[str]) -> None:
        """Forget workflows that have ended."""
        DBOS.delete_workflows(list(ids))

    def rest(self) -> None:
        """Take nothing more; what was taken goes on."""
        for event in self._dbos.background_thread_stop_events:
            event.set()
        self.bell.ring()

    def hand_over(self) -> None:
        """Give everything back; what was taken and is not done is on its queue again."""
        self.rest()
        with _one_at_a_time:
            self._settle()
            try:
                self.recover([self.executor])
            finally:
                self._leave()

    def _settle(self) -> None:
        """Wait until DBOS has kept what is done: it is told so here, and writes it in a while."""
        ends = monotonic() + _SETTLE_SECONDS
        while active(self._dbos) and monotonic() < ends:
            sleep(_LOOK_SECONDS)

    def leave(self) -> None:
        """Give everything back; who finds us gone takes over what was taken and is not done."""
        if self._dbos is not None:
            self.rest()
        with _one_at_a_time:
            self._leave()

    def _leave(self) -> None:
        DBOS.destroy()
        if self._engine is not None:
            self._engine.dispose()
        _takers[:] = [one for one in _takers if one is not self]


def active(dbos: DBOS) -> Sequence[str]:
    """Name the workflows that have begun in this process and whose ends are not kept yet."""
    return dbos._active_workflows_set.activeList()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def recover(executors: list[str]) -> Sequence[object]:
    """Make a call that DBOS keeps to itself, as `active` is, of the version that is pinned."""
    return DBOS._recover_pending_workflows(executors)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


class _Ours(logging.Handler):
    """Says what DBOS says as ours, without its SQL; the same again not for a while."""

    def __init__(self) -> None:
        super().__init__()
        self._said = dict[str, float]()

    def emit(self, record: logging.LogRecord) -> None:
        said, now = record.getMessage().partition("\n")[0], monotonic()
        self._said = {one: at for one, at in self._said.items() if now < at + _SAME_SECONDS}
        if said not in self._said:
            self._said[said] = now
            _log.log(record.levelno, "%s", said, exc_info=record.exc_info)


def _speak_by_ours() -> None:
    logger = logging.getLogger("dbos")
    logger.propagate = False
    logger.handlers[:] = [_Ours()]
