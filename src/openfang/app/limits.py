"""The guards of a node, with the limits that its configuration sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.guard.breaker import BreakerLimits, Breakers
from openfang.guard.loops import LoopLimits, Loops
from openfang.guard.rate import Quota
from openfang.guard.recursion import ChainLimits, Chains
from openfang.pipeline.guards import Guards

if TYPE_CHECKING:
    from openfang.config.models import Config


def guards_of(config: Config) -> Guards:
    """Make the guards that a configuration asks for."""
    limits = config.limits
    return Guards(
        quota=quota_of(config),
        call_cost=limits.costs.call,
        message_cost=limits.costs.message,
        chains=Chains(_chain_limits(config)),
        loops=Loops(_loop_limits(config)),
        breakers=Breakers(_breaker_limits(config)),
    )


def configure_guards(guards: Guards, config: Config) -> None:
    """Change the limits; what was counted stays."""
    guards.quota, guards.call_cost = quota_of(config), config.limits.costs.call
    guards.message_cost = config.limits.costs.message
    guards.chains.configure(_chain_limits(config))
    guards.loops.configure(_loop_limits(config))
    guards.breakers.configure(_breaker_limits(config))


def quota_of(config: Config) -> Quota:
    """Return the rate that each caller and each address has."""
    return Quota(cells_per_minute=config.limits.cells_per_minute, burst=config.limits.burst)


def _breaker_limits(config: Config) -> BreakerLimits:
    return BreakerLimits(rest=config.guard.breaker_secs)


def _chain_limits(config: Config) -> ChainLimits:
    guard = config.guard
    return ChainLimits(
        depth=guard.max_depth,
        agent_calls=guard.agent_calls,
        tool_calls=guard.tool_calls,
        at_once=guard.calls_at_once,
        edge=BreakerLimits(failures=3, rest=guard.breaker_secs),
        usd=guard.chain_usd,
    )


def _loop_limits(config: Config) -> LoopLimits:
    loops = config.loops
    return LoopLimits(
        warn_calls=loops.warn,
        block_calls=loops.block,
        warn_outcomes=loops.outcome_warn,
        block_outcomes=loops.outcome_block,
        poll_factor=loops.poll_factor,
        stale_calls=loops.no_progress,
    )
