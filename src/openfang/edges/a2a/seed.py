"""The first dialect of A2A: tasks at paths of their own, and the same as JSON-RPC."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from openfang.core.errors import (
    RATE_LIMIT,
    GuardTripped,
    NotFound,
    OpenFangError,
    Unauthenticated,
)
from openfang.core.tasks import Sent
from openfang.core.wire import moment
from openfang.edges.a2a import seed_words
from openfang.edges.a2a.bodies import read_body
from openfang.edges.a2a.seed_stream import stream
from openfang.edges.a2a.seed_words import (
    Ask,
    Fault,
    failure,
    invalid,
    no_method,
    read_bare,
    read_id,
    read_wanted,
    result,
)
from openfang.edges.a2a.settling import settled
from openfang.edges.a2a.versions import LARGE
from openfang.edges.a2a.wishes import options_of
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.watch import Watch
from openfang.protocols.a2a.seed import write_state, write_task

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping

    from openfang.core.tasks import Seen, Task, Tasks
    from openfang.edges.a2a.ports import House, Settings
    from openfang.edges.a2a.seed_words import Wanted
    from openfang.edges.a2a.staying import Staying
    from openfang.edges.api.mount import Came


class Seed:
    """Serves it, for all agents or at the address of one. Who disconnects stops nothing."""

    def __init__(self, house: House, staying: Staying, agent: str = "") -> None:
        self._house = house
        self._staying = staying
        self._agent = agent

    def of(self, agent: str) -> Seed:
        """Serve it at the address of this agent, where there is no other."""
        return Seed(self._house, self._staying, agent)

    async def send(self, came: Came, settings: Settings) -> None:
        """Take a message; the answer is the task, when it has ended or waits for its caller."""
        body = await read_body(came)
        with paid(came):
            params = read_bare(body)
        task = await self._waited(came, *await self._begun(came, settings, params))
        if task is not None:
            await came.answer(json_answer(write_task(task)))

    async def get(self, came: Came, task_id: str) -> None:
        """Read a task."""
        task = await self._tasks(came).get(task_id)
        await came.answer(json_answer(write_task(task)))

    async def cancel(self, came: Came, task_id: str) -> None:
        """End a task, and the work on it."""
        task = await self._tasks(came).cancel(task_id)
        await came.answer(json_answer(write_task(task)))

    async def history(self, came: Came, task_id: str) -> None:
        """Tell the states that a task has been in."""
        events = await self._tasks(came).events(task_id)
        states = [{"status": write_state(state), "at": moment(at)} for _, at, state in events]
        await came.answer(json_answer({"id": task_id, "history": states}))

    async def rpc(self, came: Came, settings: Settings, ask: Ask) -> None:
        """Answer a JSON-RPC request in an envelope."""
        try:
            await self._call(came, settings, ask)
        except Fault as fault:
            came.node.charge(came.caller, "health")
            await came.answer(failure(ask.number, fault))
        except OpenFangError as error:
            if of_the_edge(error):
                raise
            await came.answer(failure(ask.number, error, ask.method))

    async def _call(self, came: Came, settings: Settings, ask: Ask) -> None:
        match ask.method:
            case seed_words.SEND:
                task = await self._waited(came, *await self._begun(came, settings, ask.params))
                await _tell(came, ask, task)
            case seed_words.GET:
                await _tell(came, ask, await self._found(came, _id(came, ask)))
            case seed_words.CANCEL:
                await _tell(came, ask, await self._cancelled(came, _id(came, ask)))
            case seed_words.SUBSCRIBE:
                watched = self._sent(came, settings, ask.params)
                await stream(self._staying, came, watched, ask.number)
            case seed_words.RESUBSCRIBE:
                watched = self._watched(came, _id(came, ask))
                await stream(self._staying, came, watched, ask.number)
            case method:
                raise no_method(method)

    async def _begun(
        self, came: Came, settings: Settings, params: Mapping[str, Any]
    ) -> tuple[Tasks, Task]:
        """Take a message; by now its task is kept."""
        came.node.check_call(came.caller, "message")
        with paid(came):
            wanted = await _wanted(came, params)
            agent = wanted.agent or self._agent or ("" if wanted.task else settings.primary)
            if agent is None:
                raise no_agent()
            if self._agent and agent != self._agent:
                raise invalid(f"The message is for {agent}, and this is {self._agent}.")
            told = {**wanted.metadata, **wanted.message.metadata}
            options = options_of(told, came.chain, came.headers)
        tasks = self._house.tasks(came.caller, options.chain or came.chain)
        sent = Sent(
            agent=agent,
            message=wanted.message,
            context=wanted.context,
            task=wanted.task,
            metadata=wanted.metadata,
        )
        return tasks, await tasks.send(sent, options)

    async def _sent(
        self, came: Came, settings: Settings, params: Mapping[str, Any]
    ) -> AsyncGenerator[Seen]:
        """Take a message once there is a stream for it, and tell what becomes of it."""
        tasks, begun = await self._begun(came, settings, params)
        async with aclosing(tasks.watch(begun.id)) as seen:
            async for one in seen:
                yield one

    async def _found(self, came: Came, task_id: str) -> Task:
        """Read a task; at the address of an agent another one's does not exist."""
        task = await self._tasks(came).get(task_id)
        if self._agent and task.agent != self._agent:
            raise NotFound(f"{self._agent} has no task {task_id}.")
        return task

    async def _cancelled(self, came: Came, task_id: str) -> Task:
        if self._agent:
            await self._found(came, task_id)
        return await self._tasks(came).cancel(task_id)

    async def _watched(self, came: Came, task_id: str) -> AsyncGenerator[Seen]:
        if self._agent:
            await self._found(came, task_id)
        async with aclosing(self._tasks(came).watch(task_id)) as seen:
            async for one in seen:
                yield one

    async def _waited(self, came: Came, tasks: Tasks, task: Task) -> Task | None:
        """Wait for a task while the client does."""
        watch = Watch(came.receive)
        try:
            return await settled(self._staying, came, tasks, task)
        except asyncio.CancelledError:
            if not watch.gone:
                raise
            return None
        finally:
            watch.end()

    def _tasks(self, came: Came) -> Tasks:
        return self._house.tasks(came.caller, came.chain)


async def _wanted(came: Came, params: Mapping[str, Any]) -> Wanted:
    """Read what sends a message; others go on while a large one is looked through."""
    if len(came.body) < LARGE:
        return read_wanted(params)
    return await to_thread.run_sync(read_wanted, params)


def no_agent() -> NotFound:
    """Nobody is there to answer."""
    return NotFound(
        "No agent answers here.",
        way_out="name one in metadata.agent, or write agents/NAME/agent.toml into the home",
    )


@contextmanager
def paid(came: Came) -> Generator[None]:
    """Let what is refused here be paid for: it never comes to where calls are."""
    try:
        yield
    except OpenFangError:
        came.node.charge(came.caller, "health")
        raise


async def _tell(came: Came, ask: Ask, task: Task | None) -> None:
    """Answer with a task, unless nobody waits for it any more."""
    if task is not None:
        await came.answer(result(ask.number, write_task(task)))


def _id(came: Came, ask: Ask) -> str:
    with paid(came):
        return read_id(ask.params)


def of_the_edge(error: OpenFangError) -> bool:
    """Whether it says nothing of what was asked, but of who asks."""
    tripped = isinstance(error, GuardTripped) and error.rule == RATE_LIMIT
    return tripped or isinstance(error, Unauthenticated)
