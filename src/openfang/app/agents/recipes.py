"""What is written down of a call to an agent, and the same call made of that on another node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.agents.origin import read_origin, write_origin
from openfang.app.agents.holders import Holders
from openfang.core.calls import FOREVER, Call
from openfang.core.ids import Kind, tool_id
from openfang.core.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.agents.source import AgentSource
    from openfang.app.parts import Parts
    from openfang.core.calls import Caller
    from openfang.pipeline.tasks.engine import Recipe


async def own_time() -> Recipe:
    """Write nothing of a run that nobody asked for: what it does stands beside its task."""
    return {}


async def recipe_of(parts: Parts, call: Call, agent: str) -> Recipe | None:
    """Write down a call; nothing of one that only this process can make.

    So it is with who has no key here, with a token that is shown once and kept nowhere, and with an
    agent that was spawned: there are no others on other nodes.
    """
    running = parts.agents.agents.running if parts.agents and parts.agents.agents else {}
    source = running.get(agent)
    known = await Holders(parts, running).can_find(call.caller, call.root)
    if not known or call.admin_token or source is None or source.spec.life:
        return None
    return {
        "agent": agent,
        "caller": call.caller.id,
        "arguments": dict(call.arguments),
        "origin": write_origin(call),
        "labels": call.labels.names,
        "run": call.run,
        "meta": dict(call.meta),
        "peer": call.peer,
    }


async def call_of(
    parts: Parts, running: Mapping[str, AgentSource], recipe: Recipe, task: str
) -> Call:
    """Make the call that was written down: as who its caller is now, for whom time begins anew."""
    holders, origin = Holders(parts, running), read_origin(recipe["origin"])
    caller: Caller = await holders.must_find(recipe["caller"], origin.asker)
    seconds: float = parts.config.guard.deadline_secs
    arguments: dict[str, Any] = recipe["arguments"]
    return Call(
        tool=tool_id(Kind.AGENT, recipe["agent"]),
        caller=caller,
        arguments=arguments,
        context=replace(holders.context(caller, origin.context), task_id=task),
        chain=replace(origin.chain, deadline=parts.clock.monotonic() + seconds),
        run=recipe["run"],
        labels=Labels.of(recipe["labels"]),
        edge=origin.edge,
        patience=FOREVER,
        meta=recipe["meta"],
        peer=recipe["peer"],
        task=task,
        asker=origin.asker,
    )
