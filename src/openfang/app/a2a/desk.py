"""What one caller does with tasks: each message and each operation takes the one path."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openfang.app.a2a.operations import CANCEL, check_own, raised, sees_all, unknown, visible
from openfang.app.a2a.parcels import pack
from openfang.app.agents.recipes import recipe_of
from openfang.app.approvals.answering import Answering
from openfang.app.calling import Calling
from openfang.core.calls import FOREVER
from openfang.core.errors import Conflict, NotFound, OpenFangError, Rejected, UnknownTool
from openfang.core.ids import Kind, new_id, tool_id
from openfang.core.labels import Labels
from openfang.core.session import NO_OPTIONS
from openfang.core.sessions import SessionSummary
from openfang.core.tasks import Task
from openfang.core.values import dataclass
from openfang.pipeline.tasks.forms import content_of
from openfang.policy.showing import asked_in, read_answer
from openfang.storage.sessions import SessionStore, begin

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence

    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.calls import Call, Caller
    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.session import Options
    from openfang.core.tasks import Push, Seen, Sent, TaskFilter, TaskPage, TaskState
    from openfang.core.trace import Chain
    from openfang.pipeline.tasks.engine import Recipe
    from openfang.storage.state import Statement
    from openfang.storage.tasks import TaskHead

EDGE: Final = "a2a"
_SESSION: Final = "session_"
"""Names that begin like this are ids: nobody else gives them."""
_LONGEST_CONTEXT: Final = 200


class _Talk(NamedTuple):
    """A context, the session that it is kept in, and what begins that if it is new."""

    context: str
    session: str
    statements: Sequence[Statement] = ()


@dataclass(frozen=True, slots=True)
class Desk:
    """The tasks of one caller. Another's do not exist."""

    parts: Parts
    caller: Caller
    chain: Chain
    edge: str = EDGE

    async def send(self, sent: Sent, options: Options = NO_OPTIONS) -> Task:
        """Take a message: a new task, or the answer that one waited for."""
        await self._opened()
        task = await self._taken(sent, options)
        self.parts.hops.owed.note(task.id, self.chain)
        return task

    async def _taken(self, sent: Sent, options: Options) -> Task:
        if sent.task:
            return await self._answered(sent)
        self._find_agent(sent.agent)
        known = await self.parts.tasks.known(self.caller.id, sent.agent, sent.message.id)
        if known is not None:
            return await self._governed("get", known.id)
        return await self._begun(sent, options)

    async def _answered(self, sent: Sent) -> Task:
        task = await self._find(sent.task)
        elsewhere = sent.agent and task.agent != sent.agent
        if elsewhere or task.caller != self.caller.id:  # who watches does not speak for others
            raise unknown(sent.task)
        self._find_agent(task.agent)
        if sent.context and sent.context != task.context:
            raise Rejected(
                f"The task {task.id} is in the context {task.context}, not in {sent.context}.",
                status=422,
                rule="context",
                way_out="leave the context out, or name that of the task",
            )
        said = {"task": task.id, "message": sent.message.text}
        labels = await self._operate(task.agent, "answer", said)
        await self._check_approval(task.id, sent)
        if sent.push is None:
            return await self.parts.tasks.answer(task.id, sent.message, labels)
        await self.parts.pushes.check(sent.push)
        beside = self.parts.pushes.beside(replace(sent.push, task=task.id))
        return await self.parts.tasks.answer(task.id, sent.message, labels, beside)

    async def _check_approval(self, task_id: str, sent: Sent) -> None:
        """Refuse an answer to the question of a call by who may not give it; the task waits on."""
        form = await self.parts.tasks.asked(task_id)
        question = asked_in(form)
        if question:
            approve = read_answer(content_of(form, sent.message), question)
            await Answering(self.parts, self.caller).check(question, approve=bool(approve))

    async def _begun(self, sent: Sent, options: Options) -> Task:
        parts = self.parts
        parts.pipeline.guards.take_message(self.caller, parts.clock.monotonic())
        if sent.push is not None:
            await self.parts.pushes.check(sent.push)
        talk = await self._conversation(sent)
        try:
            return await self._kept(sent, options, talk)
        except Conflict:
            again = await self._conversation(sent)
            if again.statements or not talk.statements:
                raise
            # Somebody has begun a conversation of that name meanwhile: then that is the one.
            return await self._kept(sent, options, again)

    async def _kept(self, sent: Sent, options: Options, talk: _Talk) -> Task:
        """Keep a task with all that belongs to it, or nothing of it."""
        task_id, push, now = new_id("task"), sent.push, self.parts.clock.time_ns()
        room = self.parts.pipeline.shaper.room
        parcel = pack(sent.message, sent.metadata, self.caller.id, now, room)
        arguments = {**parcel.arguments, "session": talk.session}
        told = () if push is None else self.parts.pushes.put(replace(push, task=task_id))
        try:
            task = await self.parts.tasks.begin(
                sent,
                caller=self.caller.id,
                context=talk.context,
                session=talk.session,
                work=partial(self._work, sent.agent, arguments, options),
                recipe=partial(self._recipe, sent.agent, arguments, options),
                statements=(*talk.statements, *parcel.statements, *told),
                task_id=task_id,
            )
        except OpenFangError:  # who only goes away stops nothing
            self.parts.pushes.forget(task_id)
            raise
        if task.id != task_id:
            self.parts.pushes.forget(task_id)
        return task

    def _work(
        self,
        agent: str,
        arguments: Mapping[str, Any],
        options: Options,
        client: Client,
        progress: Listener,
    ) -> Awaitable[Result]:
        """Make the call that is the work on a task; it waits for a person if one must say yes."""
        wanted = replace(options, client=client, progress=progress)
        return self.parts.invoke(self._call(agent, arguments, wanted, client.connection))

    def _call(
        self, agent: str, arguments: Mapping[str, Any], options: Options, task: str = ""
    ) -> Call:
        wanted = replace(options, patience=FOREVER, task=task)
        calling = Calling(self.parts, self.caller, self.chain, self.edge)
        return calling.make(tool_id(Kind.AGENT, agent), arguments, wanted, task=task)

    async def _recipe(
        self, agent: str, arguments: Mapping[str, Any], options: Options
    ) -> Recipe | None:
        """Write down how another node makes the call that is the work on a task, if it can."""
        return await recipe_of(self.parts, self._call(agent, arguments, options), agent)

    async def _conversation(self, sent: Sent) -> _Talk:
        """Find the context that is meant and the session it is kept in, or make both."""
        place, name = await self._place(sent.agent), sent.context
        if not name:
            new = self._session(place)
            return _Talk(new.id, new.id, (begin(new),))
        if len(name) > _LONGEST_CONTEXT:
            raise _no_context("It is too long.")
        store = SessionStore(self.parts.database)
        if not name.startswith(_SESSION):
            found = await store.find(place, self.caller.id, name)
            new = found or self._session(place, name)
            return _Talk(name, new.id, () if found else (begin(new),))
        found = await store.get(name)
        if found is None or (found.agent, found.caller) != (place, self.caller.id):
            raise _no_context(f"There is no {name}.")
        return _Talk(name, found.id)

    def _session(self, place: str, name: str = "") -> SessionSummary:
        now, session = self.parts.clock.time_ns(), new_id("session")
        return SessionSummary(
            id=session,
            agent=place,
            caller=self.caller.id,
            name=name or session,
            title="",
            messages=0,
            labels=Labels.NONE,
            created_at=now,
            updated_at=now,
        )

    async def settled(self, task_id: str) -> Task:
        """Wait until it has ended, or waits for its caller."""
        return self._told(await self.parts.tasks.settled((await self._find(task_id)).id))

    async def watch(self, task_id: str) -> AsyncGenerator[Seen]:
        """Tell the task as it is, then all that happens to it, until it has ended."""
        task = await self._governed("subscribe", task_id)
        async with aclosing(self.parts.tasks.watch(task.id)) as watched:
            async for seen in watched:
                yield self._seen(seen)

    def _seen(self, seen: Seen) -> Seen:
        if isinstance(seen, Task):
            return self._told(seen)
        told = self._told(seen.task)
        return seen if told is seen.task else replace(seen, task=told)

    def _told(self, task: Task) -> Task:
        """Say where an answer comes from, to who told where the message came from."""
        return self.parts.hops.owed.told(task)

    async def get(self, task_id: str) -> Task:
        """Read one."""
        return await self._governed("get", task_id)

    async def cancel(self, task_id: str) -> Task:
        """End it, and the work on it."""
        return await self._governed("cancel", task_id)

    async def page(self, wanted: TaskFilter) -> TaskPage:
        """List them; those of one agent on record with that agent, all of them with none."""
        await self._opened()
        if wanted.agent:
            await self._operate(wanted.agent, "list", {})
        whose = None if sees_all(self.caller, self.edge) else self.caller.id
        return await self.parts.tasks.page(whose, wanted)

    async def events(self, task_id: str) -> Sequence[tuple[int, int, TaskState]]:
        """Tell its states in order."""
        task = await self._governed("get", task_id)
        return await self.parts.tasks.states(task.id)

    async def set_push(self, push: Push) -> Push:
        """Let somebody be told of what happens to it."""
        task = await self._governed("push", push.task)
        return await self.parts.pushes.set(replace(push, task=task.id))

    async def pushes(self, task_id: str) -> Sequence[Push]:
        """List who is told."""
        task = await self._governed("push", task_id)
        return await self.parts.pushes.of(task.id)

    async def delete_push(self, task_id: str, push_id: str) -> None:
        """Tell them no longer."""
        task = await self._governed("push", task_id)
        await self.parts.pushes.delete(task.id, push_id)

    async def _governed(self, operation: str, task_id: str) -> Task:
        """Do something with a task as a call of its agent's; then look at how it is."""
        head, agents = await self._head(task_id), await self._agents()
        if head.agent in agents.running:
            await self._operate(head.agent, operation, {"task": task_id})
        else:
            await self._left(head, operation, task_id)
        return self._told(await self._find(task_id))

    async def _left(self, head: TaskHead, operation: str, task_id: str) -> None:
        """Do something with a task of an agent that is gone: it governs nothing, its tasks stay."""
        cells, now = self.parts.config.limits.costs.call, self.parts.clock.monotonic()
        self.parts.pipeline.guards.charge(self.caller, cells, now)
        if operation == CANCEL:
            check_own(head, self.caller, task_id)
            await self.parts.tasks.cancel(task_id)

    async def _operate(self, agent: str, operation: str, arguments: Mapping[str, Any]) -> Labels:
        """Do something with a task, on record; the answer is what the request carries."""
        tool = f"{tool_id(Kind.AGENT, agent)}:tasks/{operation}"
        calling = Calling(self.parts, self.caller, self.chain, self.edge)
        call = calling.make(tool, arguments, NO_OPTIONS)
        try:
            # The same question again is no loop: it is how who waits finds out.
            result = await self.parts.invoke(replace(call, run=call.id))
        except UnknownTool:
            raise _no_agent(agent) from None
        if result.fault is not None:
            raise raised(result.fault)
        return call.labels

    async def _find(self, task_id: str) -> Task:
        found = await self.parts.tasks.find(task_id)
        if found is None or not visible(found, self.caller, self.edge):
            raise unknown(task_id)
        return found

    async def _head(self, task_id: str) -> TaskHead:
        found = await self.parts.tasks.head(task_id)
        if found is None or not visible(found, self.caller, self.edge):
            raise unknown(task_id)
        return found

    def _find_agent(self, name: str) -> None:
        try:
            self.parts.catalog.find(self.caller, tool_id(Kind.AGENT, name))
        except UnknownTool:
            raise _no_agent(name) from None

    async def _place(self, agent: str) -> str:
        found = (await self._agents()).running.get(agent)
        if found is None:
            raise _no_agent(agent)
        return found.spec.place

    async def _opened(self) -> None:
        await self._agents()

    async def _agents(self) -> Agents:
        if self.parts.agents is None:
            raise NotFound("No agent is there.", way_out="openfang start")
        return await self.parts.agents.opened()


def _no_agent(name: str) -> NotFound:
    return NotFound(f"No agent {name} is there.", way_out="openfang agents list")


def _no_context(why: str) -> Rejected:
    return Rejected(
        f"This context cannot be gone on with: {why}",
        status=422,
        rule="context",
        way_out="leave it out to begin a new one, or give it a name of your own",
    )
