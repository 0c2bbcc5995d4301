"""Runs the agents that are code: one keeper for each, and one lifetime for all of them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.agents.code.allotted import Allotted
from openfang.agents.code.running import Order
from openfang.agents.code.start import recipe_of
from openfang.core.agents import Ended, Ending
from openfang.core.values import dataclass
from openfang.host.children.environments import Environments
from openfang.host.children.keeper import Keeper, Means
from openfang.host.children.start import nobody_looks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from openfang.agents.code.running import Ask
    from openfang.agents.ports import Incoming
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Wish
    from openfang.core.progress import Listener
    from openfang.core.results import Result
    from openfang.host.children.start import Confine, Witness

_NO_TIME: Final = "I stopped: the run had no more time left before the agent's process was ready."


@dataclass(slots=True, kw_only=True)
class CodePrograms:
    """Implements `agents.ports.Programs`. Answers are given while `run` runs."""

    confine: Confine
    environments: Path
    environ: Mapping[str, str]
    witness: Witness = nobody_looks
    _begun: anyio.Event = field(default_factory=anyio.Event)
    _keepers: dict[str, Keeper] = field(default_factory=dict[str, Keeper])
    _means: Means | None = None

    async def run(self) -> None:
        """Hold every process, until the node ends; then they end, too."""
        async with anyio.create_task_group() as tasks:
            self._means = Means(
                confine=self.confine,
                environments=Environments(self.environments, self.environ),
                witness=self.witness,
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
        ask: Ask,
        told: Listener,
    ) -> Ended:
        """Hand a message to the agent's process and wait for its answer."""
        time, warm = Allotted(spec.budget.seconds), None
        with time.limited():
            warm = await (await self._keeper(spec.name)).warm(recipe_of(spec))
        if warm is None:
            ended = Ended(answer=_NO_TIME, ending=Ending.TIME)
            told(ended)
            return ended
        order = Order(spec=spec, incoming=incoming, call=call, told=told, ask=ask, time=time)
        return await warm.serve(order)

    def layers(self, name: str) -> Sequence[str]:
        """What stands between an agent's process and the machine; nothing if none runs."""
        keeper = self._keepers.get(name)
        return keeper.layers if keeper is not None else ()

    def retain(self, names: Collection[str]) -> None:
        """Keep these agents alone; the others finish what they are at, and end."""
        for name in [name for name in self._keepers if name not in names]:
            self._keepers.pop(name).retire()

    async def _keeper(self, name: str) -> Keeper:
        if not self._begun.is_set():
            await self._begun.wait()
        assert self._means is not None  # noqa: S101 - `run` has begun
        return self._keepers.setdefault(name, Keeper(self._means))
