"""An agent's own model as its eyes: what it looks at is paid for like all that it thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from openfang.agents.meter import Meter
from openfang.agents.spec import Mind
from openfang.core.agents import Usage
from openfang.core.errors import SourceFailed
from openfang.core.usage import Entry
from openfang.core.values import dataclass
from openfang.storage import ledger
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from openfang.agents.spec import AgentSpec
    from openfang.app.agents.budgets import Budgets
    from openfang.app.agents.minds import Minds
    from openfang.app.parts import Parts
    from openfang.core.agents import Image
    from openfang.core.calls import Call
    from openfang.core.usage import Payer

_NONE_YET = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """Shows pictures to the models of agents, on the account of the run that asks."""

    parts: Parts
    minds: Minds
    budgets: Budgets

    async def see(self, spec: AgentSpec, call: Call, image: Image, question: str) -> str | None:
        """Ask the agent's model about a picture; None where it has no eyes."""
        if not isinstance(spec.does, Mind) or not self.minds.may_see(spec.does):
            return None
        payer = self.budgets.payer(spec, call, call.run or call.id)
        await self._check(spec, payer, call)
        meter = Meter()
        try:
            return await self.minds.see(spec.does, image, question, meter)
        finally:
            with anyio.CancelScope(shield=True):
                await self._keep(payer, meter, call)

    async def _check(self, spec: AgentSpec, payer: Payer, call: Call) -> None:
        over = await self.budgets.holding(spec, payer, call.chain)(_NONE_YET)
        if over is not None:
            words = over.sentence(self.parts.clock.time_ns())
            raise SourceFailed(f"The picture was not looked at: {words}", way_out="openfang usage")

    async def _keep(self, payer: Payer, meter: Meter, call: Call) -> None:
        with meter.keeping() as spending:
            entry = Entry(payer=payer, spending=spending)
            written = ledger.add(entry, self.parts.clock.time_ns())
            if written:
                await self.parts.writer.write(Unit(statements=written))
        self.budgets.spent(spending, call.chain)
