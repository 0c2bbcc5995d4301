"""Tasks of which somebody is told, on a real database, and a real receiver on one address."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import orjson
from aiohttp import web

from openfang.app.a2a.delivery import Delivery
from openfang.app.a2a.push import Pushes
from openfang.app.a2a.targets import Targets
from openfang.app.timers import Timers
from openfang.audit.broker import Broker
from openfang.audit.chain import digest
from openfang.core.events import AuditEvent
from openfang.core.ids import new_id
from openfang.core.tasks import Moved, Push, Role, Task, TaskMessage, TaskState, TaskUpdate
from openfang.host.names import system_resolve
from openfang.storage import tasks
from openfang.storage.database import Database, at_once, open_home
from openfang.storage.log import all_rows
from openfang.storage.processes import Process
from openfang.storage.pushes import KIND, PushStore
from openfang.storage.tasks import TaskStore
from openfang.storage.timers import Timer, TimerStore
from openfang.storage.writer import Writer
from openfang.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
    from pathlib import Path

    from openfang.host.names import Resolve

KEY = bytes(range(32))
Answer: TypeAlias = (
    "int | web.Response | Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]"
)


@dataclass(frozen=True)
class Taken:
    """A notification as its receiver saw it."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def state(self) -> str:
        return orjson.loads(self.body)["state"]


@dataclass
class Receiver:
    """Notes what it gets; answers 200 unless a test has said what else."""

    address: str
    port: int = 0
    answers: list[Answer] = field(default_factory=list["Answer"])
    taken: list[Taken] = field(default_factory=list[Taken])
    _more: anyio.Event = field(default_factory=anyio.Event)

    def url(self, path: str = "/hook", *, host: str = "") -> str:
        return f"http://{host or self.address}:{self.port}{path}"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.taken.append(Taken(request.path_qs, headers, await request.read()))
        self._more.set()
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, int):
            return web.Response(status=answer)
        return answer if isinstance(answer, web.Response) else await answer(request)

    async def times(self, count: int) -> None:
        with anyio.fail_after(30):
            while len(self.taken) < count:
                self._more = anyio.Event()
                await self._more.wait()


@asynccontextmanager
async def receiving(
    *answers: Answer, address: str = "127.0.0.1", port: int = 0
) -> AsyncGenerator[Receiver]:
    receiver = Receiver(address, answers=list(answers))
    runner = web.ServerRunner(web.Server(receiver.handle), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        receiver.port = runner.addresses[0][1]
        yield receiver
    finally:
        await runner.cleanup()


def write(task: Task, dialect: str) -> bytes:
    """A form of a test's own: what the dialects make of a task is shown elsewhere."""
    said = [message.text for message in task.history]
    told = None if task.status is None else task.status.text
    body = {"id": task.id, "state": task.state.value, "dialect": dialect, "said": said}
    return orjson.dumps({**body, "n": task.version, "status": told})


def sign(body: bytes, audience: str) -> str:
    return f"{sha256(body).hexdigest()} {audience}"


def says(text: str, role: Role = Role.USER) -> TaskMessage:
    return TaskMessage(id=new_id("message"), role=role, parts=({"type": "text", "text": text},))


@dataclass
class House:
    """The parts that a push notification goes through, put together as in a node."""

    writer: Writer
    broker: Broker
    clock: ManualClock
    tasks: TaskStore
    targets: Targets
    pushes: Pushes
    delivery: Delivery
    private: bool = True
    loops: list[Timers] = field(default_factory=list[Timers])

    def loop(self) -> Timers:
        made = Timers(
            store=TimerStore(self.tasks.database),
            writer=self.writer,
            clock=self.clock,
            chance=random.Random(1),  # noqa: S311 - a test
        )
        made.register(KIND, self.delivery.deliver)
        self.loops.append(made)
        return made

    def committed(self) -> None:
        for loop in self.loops:
            loop.wake()

    def restarted(self) -> None:
        """Forget all that is not in the database."""
        self.pushes = replace(self.pushes)
        at_once(self.pushes.load())

    async def begin(self, push: Push | None = None, caller: str = "key:a") -> Task:
        """Begin a task, as the service does it."""
        now = self.clock.time_ns()
        task = Task(
            id=new_id("task"),
            agent="greeter",
            caller=caller,
            context="c",
            session="s",
            state=TaskState.WORKING,
            history=(says("hello"),),
            version=2,
            created_at=now,
            changed_at=now,
        )
        beside = () if push is None else self.pushes.put(replace(push, task=task.id))
        update = TaskUpdate(task=task, what=Moved(state=task.state), at=now, n=task.version)
        statements = (
            tasks.insert(task, "", "process"),
            *beside,
            *self.pushes.outbox(task, update),
        )
        await self.broker.append((), statements)
        self.committed()
        return task

    async def move(self, task: Task, state: TaskState, said: str = "") -> Task:
        """Change a task, as the service does it."""
        what = Moved(state=state, status=says(said, Role.AGENT) if said else None)
        now = self.clock.time_ns()
        after = task.moved(what, now)
        update = TaskUpdate(task=after, what=what, at=now, n=after.version)
        await self.broker.append((), (*tasks.move(task, after), *self.pushes.outbox(after, update)))
        self.committed()
        return after

    def waiting(self) -> list[Timer]:
        return at_once(TimerStore(self.tasks.database).soonest(KIND, 100))

    async def told(self) -> None:
        """Wait until nobody is to be told of anything."""
        with anyio.fail_after(30):
            while self.waiting():
                await anyio.lowlevel.checkpoint()

    async def tried(self, tries: int) -> Timer:
        """Wait until what is due first has failed so often."""
        with anyio.fail_after(30):
            while self.waiting()[0].tries != tries:
                await anyio.lowlevel.checkpoint()
        return self.waiting()[0]

    @property
    def file(self) -> Database:
        assert isinstance(self.tasks.database, Database)
        return self.tasks.database

    def records(self) -> list[AuditEvent]:
        return [AuditEvent.of(row) for row in all_rows(self.writer.path)]


@contextmanager
def pushing(folder: Path, resolve: Resolve = system_resolve) -> Generator[House]:
    with closing(open_home(folder / "openfang.db")) as database:
        clock = ManualClock()
        writer = Writer(path=database.path, node="n", digest=digest, now=clock.time_ns)
        with closing(writer):
            broker = Broker(writer=writer, process=Process(folder), redact=lambda text: text)
            house: House
            targets = Targets(allow_private=lambda: house.private, resolve=resolve)
            store, found = PushStore(database, KEY), TaskStore(database)
            delivery = Delivery(
                store=store,
                find=found.get,
                append=broker.append,
                clock=clock,
                targets=targets,
                write=write,
                sign=sign,
                chance=random.Random(1),  # noqa: S311 - a test
            )
            pushes = Pushes(
                store=store, tasks=found, append=broker.append, clock=clock, targets=targets
            )
            at_once(pushes.load())
            house = House(writer, broker, clock, found, targets, pushes, delivery)
            yield house


@asynccontextmanager
async def running(*loops: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        for loop in loops:
            group.start_soon(loop)
        yield
        group.cancel_scope.cancel()
