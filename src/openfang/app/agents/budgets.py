"""The budgets of a node: who pays for a run, and which bounds hold for it at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openfang.agents.budgets import reached
from openfang.core.budgets import Account, Allowance, Whose, Window
from openfang.core.usage import Payer
from openfang.storage.ledger import LedgerStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openfang.agents.spec import AgentSpec
    from openfang.app.parts import Parts
    from openfang.core.agents import Usage
    from openfang.core.budgets import Reached
    from openfang.core.calls import Call
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

    def holding(self, spec: AgentSpec, payer: Payer) -> Callable[[Usage], Reached | None]:
        """Begin a run: what is returned finds a budget that is used up, given the run's usage.

        Those of its agent and its caller are as the run began; the node's can stop it meanwhile.
        """
        parts, look = self.parts, LedgerStore(self.parts.database)
        own = (*_of_agent(spec, payer), *self._of_caller(payer.caller))

        def over(used: Usage) -> Reached | None:
            return reached((*own, *self._of_node()), look, used, parts.clock.time_ns())

        return over

    def spent(self, spending: Spending) -> None:
        """Hear of what was written down."""
        self.parts.spent += spending

    def _of_caller(self, caller: str) -> Iterator[Allowance]:
        kind, _, name = caller.partition(":")
        most = self.parts.keys.budget(name) if kind == "key" else None
        if most:
            yield Allowance(
                account=Account(whose=Whose.CALLER, name=caller),
                window=Window.DAY,
                said=f"the key {name}",
                setting="openfang keys create --budget-usd-per-day",
                cost_usd=most,
            )

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
