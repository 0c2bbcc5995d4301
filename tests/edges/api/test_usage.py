"""`/api/usage`: what was used up, for who may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from openfang.core.usage import Entry, Payer, Spending
from openfang.storage import ledger
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C6.4", "C12.1")

ONE = Spending(
    requests=1,
    input_tokens=100,
    output_tokens=10,
    cost_usd=0.125,
    tool_calls=2,
    schema_bytes=300,
)
BODY = {
    "requests": 1,
    "input_tokens": 100,
    "output_tokens": 10,
    "cost_usd": 0.125,
    "tool_calls": 2,
    "schema_bytes": 300,
}
CHAIN = "c" * 32


async def spend(node: Live, agent: str, caller: str = "key:admin") -> None:
    payer = Payer(run=f"run of {agent}", chain=CHAIN, agent=agent, purse=agent, caller=caller)
    parts = node.app.parts
    statements = ledger.add(Entry(payer=payer, spending=ONE), parts.clock.time_ns())
    await parts.writer.write(Unit(statements=statements))


async def test_it_is_added_up_by_what_is_asked(node: Live) -> None:
    await spend(node, "coder")
    body = (await node.get("/api/usage")).json
    assert body == {
        "by": "agent",
        "since": body["since"],
        "usage": [{"agent": "coder", **BODY}],
        "total": BODY,
        "more": False,
    }
    by_chain = (await node.get("/api/usage?by=chain&since=1d&agent=coder&key=admin")).json
    assert by_chain["usage"] == [{"chain": CHAIN, **BODY}]
    assert (await node.get("/api/usage?agent=clerk")).json["usage"] == []


async def test_calls_over_http_count_for_their_key(node: Live) -> None:
    user = await node.key("user")
    for _ in range(3):
        assert (await node.call("builtin:system_time", key=user)).status == 200
    (line,) = (await node.get("/api/usage?by=key", key=user)).json["usage"]
    assert (line["key"], line["tool_calls"], line["requests"]) == ("key:user", 3, 0)


async def test_another_callers_is_not_there_but_for_who_watches(node: Live) -> None:
    user, auditor = await node.key("user"), await node.key("watch", role="auditor")
    await spend(node, "coder", "key:user")
    await spend(node, "clerk")
    seen = {
        name: [line["agent"] for line in (await node.get("/api/usage", key=key)).json["usage"]]
        for name, key in (("user", user), ("watch", auditor), ("admin", ""))
    }
    assert seen == {"user": ["coder"], "watch": ["clerk", "coder"], "admin": ["clerk", "coder"]}
    assert (await node.get("/api/usage?key=admin", key=user)).json["usage"] == []


@pytest.mark.parametrize(
    "query", ["by=colour", "since=7", "since=2026-02-30", "since=1d%0A", "agent=", "what=1"]
)
async def test_what_is_asked_wrongly_is_refused(node: Live, query: str) -> None:
    assert (await node.get(f"/api/usage?{query}")).status == 400


@pytest.mark.requirement("C14.3")
async def test_what_models_used_is_counted_for_prometheus(node: Live) -> None:
    node.app.parts.spent += ONE
    text = (await node.get("/metrics")).body.decode()
    for line in (
        "openfang_model_requests_total 1.0",
        "openfang_model_input_tokens_total 100.0",
        "openfang_model_output_tokens_total 10.0",
        "openfang_model_cost_usd_total 0.125",
    ):
        assert line in text


async def test_a_key_is_made_with_a_budget(node: Live) -> None:
    reply = await node.post("/api/keys", {"name": "poor", "budget_usd_per_day": 2.5})
    assert (reply.status, reply.json["budget_usd_per_day"]) == (201, 2.5)
    for wrong in (0, -1, "much", 2_000_000):
        body = {"name": "none", "budget_usd_per_day": wrong}
        assert (await node.post("/api/keys", body)).status == 422
