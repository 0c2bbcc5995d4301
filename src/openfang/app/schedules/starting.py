"""Runs that nobody waits for: a message to an agent as a task, with all that belongs to it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from openfang.app.agents.holders import Holders, reaching
from openfang.app.agents.recipes import own_time
from openfang.app.schedules.outcomes import Own, kept
from openfang.core.calls import FOREVER, Call
from openfang.core.ids import Kind, tool_id
from openfang.core.labels import Labels
from openfang.core.results import text_part
from openfang.core.sessions import SessionSummary
from openfang.core.tasks import Role, Sent, TaskMessage
from openfang.core.values import dataclass
from openfang.storage.sessions import begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.agents.origin import Origin
    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.service import Work
    from openfang.storage.tasks import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What an agent is told, on whose behalf, in which chain; the same `message_id` is told once.

    `granted`: the agent may be called even if the owner's grants do not name it.
    """

    agent: str
    text: str
    message_id: str
    owner: str
    root: str
    origin: Origin
    labels: Labels
    edge: str
    granted: bool = False

    @property
    def task_id(self) -> str:
        """The id of the task that it becomes, the same whoever begins it."""
        return f"task_{_digest(f'{self.owner} {self.agent} {self.message_id}')}"

    @property
    def session_id(self) -> str:
        """The conversation that is made for it alone."""
        return f"session_{_digest(f'of {self.task_id}')}"

    @property
    def own(self) -> Own:
        """What is kept of how it ends."""
        return Own(
            edge=self.edge,
            task=self.task_id,
            session=self.session_id,
            agent=self.agent,
            owner=self.owner,
        )


@dataclass(frozen=True, slots=True)
class Errands:
    """Begins runs, each bound to who its owner is now."""

    parts: Parts
    agents: Agents

    async def call(self, errand: Errand) -> Call:
        """Make the call that the run is. Who is gone is refused; who may less, by the path."""
        holders = Holders(self.parts, self.agents.running)
        caller = await holders.must_find(errand.owner, errand.root)
        config, clock = self.parts.config, self.parts.clock
        return Call(
            tool=tool_id(Kind.AGENT, errand.agent),
            caller=reaching(caller, errand.agent) if errand.granted else caller,
            arguments={"message": errand.text, "session": errand.session_id},
            context=holders.context(caller, errand.origin.context),
            chain=replace(
                errand.origin.chain, deadline=clock.monotonic() + config.guard.deadline_secs
            ),
            labels=errand.labels,
            edge=errand.edge,
            patience=FOREVER,
            task=errand.task_id,
            asker="" if errand.root == errand.owner else errand.root,
        )

    async def begin(self, errand: Errand, statements: Sequence[Statement] = ()) -> Task:
        """Keep the run as a task, in one unit with the statements, and begin the work on it."""
        said = TaskMessage(id=errand.message_id, role=Role.USER, parts=(text_part(errand.text),))
        return await self.parts.tasks.begin(
            Sent(agent=errand.agent, message=said),
            caller=errand.owner,
            context=errand.session_id,
            session=errand.session_id,
            work=self.work(errand),
            recipe=own_time,
            statements=(begin(self._session(errand)), *statements),
            task_id=errand.task_id,
        )

    def work(self, errand: Errand) -> Work:
        """Give the work on the task that an errand is."""
        return partial(self._work, errand)

    async def _work(self, errand: Errand, client: Client, progress: Listener) -> Result:
        return await kept(self.parts, errand.own, partial(self._made, errand, client, progress))

    async def _made(self, errand: Errand, client: Client, progress: Listener) -> Result:
        call = await self.call(errand)
        return await self.parts.invoke(replace(call, client=client, progress=progress))

    def _session(self, errand: Errand) -> SessionSummary:
        source, now = self.agents.running.get(errand.agent), self.parts.clock.time_ns()
        return SessionSummary(
            id=errand.session_id,
            agent=source.spec.place if source else errand.agent,
            caller=errand.owner,
            name=errand.session_id,
            title="",
            messages=0,
            labels=Labels.NONE,
            created_at=now,
            updated_at=now,
        )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
