"""The budgets of a node: who pays for a run, and which bounds hold for it at this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.agents.budgets import reached
from openfang.core.budgets import Account, Allowance, Reached, Whose, Window
from openfang.core.purse import least
from openfang.core.usage import Payer
from openfang.core.values import dataclass
from openfang.storage.ledger import LedgerStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from openfang.agents.spec import AgentSpec
    from openfang.app.parts import Parts
    from openfang.core.agents import Usage
    from openfang.core.calls import Call
    from openfang.core.trace import Chain
    from openfang.core.usage import Spending

_NODE = Account(whose=Whose.NODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Looks at the ledger before a model is asked.

    Runs side by side see what the others have written down: each can exceed a budget by the request
    that it has under way.
    """

    parts: Parts
    purse: Callable[[AgentSpec], str]

    def payer(self, spec: AgentSpec, call: Call, run: str) -> Payer:
        """Say on whose account a run goes."""
        return Payer(
            run=run,
            chain=call.chain.trace_id,
            agent=spec.place,
            purse=self.purse(spec),
            caller=call.root,
        )

    def holding(
        self, spec: AgentSpec, payer: Payer, chain: Chain
    ) -> Callable[[Usage], Awaitable[Reached | None]]:
        """Begin a run: what is returned finds a budget that is used up, given the run's usage.

        Those of its agent and its caller are as the run began; the node's can stop it meanwhile.
        """
        parts, look = self.parts, LedgerStore(self.parts.database)
        own = tuple(_of_agent(spec, payer))
        theirs: list[Allowance] | None = None

        async def over(used: Usage) -> Reached | None:
            nonlocal theirs
            if theirs is None:
                theirs = await self._of_caller(payer.caller)
            now = parts.clock.time_ns()
            return self._of_chain(chain) or await reached(
                (*own, *theirs, *self._of_node()), look, used, now
            )

        return over

    def spent(self, spending: Spending, chain: Chain) -> None:
        """Hear of what was written down, and in which chain it was spent."""
        self.parts.spent += spending
        if spending.cost_usd:
            self.parts.pipeline.guards.chains.pay(chain, spending.cost_usd)

    def _of_chain(self, chain: Chain) -> Reached | None:
        """Whether the chain has spent all that it may, here and where it comes from."""
        left, most = self.parts.pipeline.guards.chains.left(chain)[1], self._chain_usd(chain)
        if left is None or left > 0:
            return None
        allowance = Allowance(
            account=Account(whose=Whose.NODE),
            window=Window.CHAIN,
            said="this chain of calls",
            setting="guard.chain_usd, here or at the node it comes from",
            cost_usd=most,
        )
        return Reached(allowance=allowance, used=most)

    def _chain_usd(self, chain: Chain) -> float:
        told = chain.purse.given_usd if chain.purse else None
        return least(told, self.parts.config.guard.chain_usd or None) or 0.0

    async def _of_caller(self, caller: str) -> list[Allowance]:
        kind, _, name = caller.partition(":")
        most = await self.parts.keys.budget(name) if kind == "key" else None
        if not most:
            return []
        allowance = Allowance(
            account=Account(whose=Whose.CALLER, name=caller),
            window=Window.DAY,
            said=f"the key {name}",
            setting="openfang keys create --budget-usd-per-day",
            cost_usd=most,
        )
        return [allowance]

    def _of_node(self) -> Iterator[Allowance]:
        config = self.parts.config.budget
        bounds = {
            Window.HOUR: ("budget.max_hourly_usd", config.max_hourly_usd),
            Window.DAY: ("budget.max_daily_usd", config.max_daily_usd),
            Window.MONTH: ("budget.max_monthly_usd", config.max_monthly_usd),
        }
        for window, (setting, most) in bounds.items():
            if most:
                yield Allowance(
                    account=_NODE, window=window, said="this node", setting=setting, cost_usd=most
                )


def _of_agent(spec: AgentSpec, payer: Payer) -> Iterator[Allowance]:
    budget, account = spec.budget, Account(whose=Whose.PURSE, name=payer.purse)
    said = f"the agent {payer.purse.partition('~')[0]}"
    for window, setting, tokens, cost in (
        (Window.RUN, "safety.max_token_usage", budget.run_tokens, 0.0),
        (Window.HOUR, "resources.max_llm_tokens_per_hour", budget.tokens, 0.0),
        (Window.HOUR, "resources.max_cost_per_hour_usd", 0, budget.cost_usd),
        (Window.DAY, "resources.max_cost_per_day_usd", 0, budget.daily_usd),
        (Window.MONTH, "resources.max_cost_per_month_usd", 0, budget.monthly_usd),
    ):
        if tokens or cost:
            yield Allowance(
                account=account,
                window=window,
                said=said,
                setting=setting,
                tokens=tokens,
                cost_usd=cost,
            )
