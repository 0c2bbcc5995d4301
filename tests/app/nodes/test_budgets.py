"""What the agents of one chain may spend together, here and elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.agents.test_node import ASSISTANT, put
from tests.agents.test_spending import Paid, ask, node, thinks

from openfang.core.errors import GuardTripped
from openfang.core.trace import Told, read_chain

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C8.3")


async def test_a_chain_spends_no_more_than_it_may(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    model = Paid(calls=5)
    async with node(tmp_path, "[guard]\nchain_usd = 0.6\n") as (app, agents):
        thinks(app, agents, "assistant", model)
        stopped = await ask(app)
        again = await ask(app)
    words = "I stopped: the budget of this chain of calls is used up: $0.60 of $0.60 a chain"
    assert stopped.text.startswith(words), stopped.text
    assert stopped.structured["budget"]["setting"].startswith("guard.chain_usd")
    assert again.text.startswith(words), "another chain has a budget of its own"
    assert len(model.prompts) == 6


async def test_what_another_node_left_of_the_money_holds_here(tmp_path: Path) -> None:
    put(tmp_path, "assistant", ASSISTANT)
    model = Paid(calls=5)
    async with node(tmp_path) as (app, agents):
        thinks(app, agents, "assistant", model)
        told = read_chain(told=Told(usd=0.3))
        arrived = app.parts.hops.arrive(told, app.caller)
        call = app.make("agent:assistant", {"message": "how late is it?"})
        stopped = await app.invoke(replace(call, chain=arrived.chain))
        assert stopped.text.startswith("I stopped: the budget of this chain of calls is used up")
        assert len(model.prompts) == 2
        with pytest.raises(GuardTripped) as refused:
            await app.invoke(replace(call, id="call_2", chain=arrived.chain))
    assert refused.value.rule == "chain_cost"
    assert "answer by yourself" in refused.value.message
