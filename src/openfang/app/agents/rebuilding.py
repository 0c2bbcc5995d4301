"""The work on a task, built from what is kept: begun, gone on with, or what it came to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from openfang.app.agents.recipes import call_of
from openfang.app.schedules.due import Due
from openfang.app.schedules.triggers import Triggered
from openfang.core.errors import SourceFailed
from openfang.core.values import dataclass
from openfang.pipeline.tasks.outcomes import INTERRUPTED
from openfang.storage.agent_runs import AgentRunStore

if TYPE_CHECKING:
    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.engine import Recipe
    from openfang.pipeline.tasks.service import Work


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """Builds works. What an earlier process had done of one, its journal says."""

    parts: Parts
    agents: Agents

    async def build(self, recipe: Recipe, task: Task) -> Work:
        """Build the work on a task that is ours alone now."""
        runs = AgentRunStore(self.parts.database)
        run = await runs.under_way_for(task.id)
        if run is not None:
            one = await self.agents.sessions.take(run)
            return partial(self.agents.resuming.go_on, one) if one else partial(self._told, task)
        if await runs.any_for(task.id):
            return partial(self._told, task)
        return await self._own_time(task) if not recipe else partial(self._begun, recipe, task)

    async def _begun(
        self, recipe: Recipe, task: Task, client: Client, progress: Listener
    ) -> Result:
        call = await call_of(self.parts, self.agents.running, recipe, task.id)
        return await self.parts.invoke(replace(call, client=client, progress=progress))

    async def _own_time(self, task: Task) -> Work:
        """Find what a schedule or a trigger has it do."""
        triggered = await Triggered(self.parts, self.agents).never_begun()
        work = triggered.get(task.id) or await Due(self.parts, self.agents).work_on(task.id)
        return work or partial(self._told, task)

    async def _told(self, task: Task, client: Client, progress: Listener) -> Result:
        """Tell what an agent had answered, if it had and only its task does not know."""
        del client, progress
        result = await self.agents.resuming.ended(task.id)
        if result is None:
            raise SourceFailed(INTERRUPTED, way_out="send the message again")
        return result
