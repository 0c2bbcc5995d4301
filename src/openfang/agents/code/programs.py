"""Runs the agents that are code: one keeper for each, and one lifetime for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from openfang.agents.code.environments import Environments
from openfang.agents.code.keeper import Keeper, Means
from openfang.agents.code.running import Order, nobody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping
    from pathlib import Path

    from openfang.agents.code.running import Ask
    from openfang.agents.code.start import Confine
    from openfang.agents.ports import Incoming
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Ended, Wish
    from openfang.core.progress import Listener
    from openfang.core.results import Result


@dataclass(slots=True, kw_only=True)
class CodePrograms:
    """Implements `agents.ports.Programs`. Answers are given while `run` runs."""

    confine: Confine
    environments: Path
    environ: Mapping[str, str]
    ask: Ask = nobody
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _keepers: dict[str, Keeper] = field(default_factory=dict[str, Keeper])
    _means: Means | None = None

    async def run(self) -> None:
        """Hold every process, until the node ends; then they end, too."""
        async with anyio.create_task_group() as tasks:
            self._means = Means(
                confine=self.confine,
                environments=Environments(self.environments, self.environ),
                tasks=tasks,
            )
            self._begun.set()
            await anyio.sleep_forever()

    async def answer(
        self,
        spec: AgentSpec,
        incoming: Incoming,
        *,
        call: Callable[[Wish], Awaitable[Result]],
        told: Listener,
    ) -> Ended:
        """Hand a message to the agent's process and wait for its answer."""
        warm = await (await self._keeper(spec.name)).warm(spec)
        return await warm.answer(
            Order(spec=spec, incoming=incoming, call=call, told=told, ask=self.ask)
        )

    def retain(self, names: Collection[str]) -> None:
        """Keep these agents alone; the others finish what they are at, and end."""
        for name in [name for name in self._keepers if name not in names]:
            self._keepers.pop(name).retire()

    async def _keeper(self, name: str) -> Keeper:
        await self._begun.wait()
        assert self._means is not None  # noqa: S101 - `run` has begun
        return self._keepers.setdefault(name, Keeper(self._means))
