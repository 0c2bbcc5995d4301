"""What a run holds is noted again while it is gone on with, and not more than once a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.testing import ManualClock, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C9.1")
HOUR = 3600


async def page(_: Mapping[str, Any]) -> Result:
    return text_result("a page", labels=Labels.EXTERNAL_NETWORK)


@pytest.mark.parametrize(("hours", "noted"), [((0, 23), 0), ((0, 24, 1), 24), ((0, 24, 24), 48)])
async def test_a_run_that_is_gone_on_with_is_noted_once_a_day(
    tmp_path: Path, hours: tuple[int, ...], noted: int
) -> None:
    clock = ManualClock()
    began = clock.time_ns()
    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "demo", {"page": (facts, page)})
    async with open_test_app(tmp_path / "home", sources=[source], clock=clock) as app:
        call = app.make("mcp:demo:page", {}, run="r")
        for passed in hours:
            clock.advance(passed * HOUR)
            await app.invoke(app.make("mcp:demo:page", {}, run="r"))
        labels, at = await app.parts.pipeline.runs.store.kept(call.run_id or "")
    assert labels == Labels.EXTERNAL_NETWORK
    assert at - began == noted * HOUR * 10**9


async def test_what_is_read_apart_from_a_run_leaves_nothing_untrusted_in_it(tmp_path: Path) -> None:
    facts = {"risk": Risk.LOW, "tags": frozenset[str]()}
    source = TableSource(Kind.MCP, "demo", {"page": (facts, page)})
    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        runs, found = app.parts.pipeline.runs, list[Labels]()
        for apart in (True, False):
            call = app.make("mcp:demo:page", {}, run="r", apart=apart)
            await app.invoke(call)
            found.append(await runs.held(call))
    assert found == [Labels.NONE, Labels.EXTERNAL_NETWORK]


@pytest.mark.requirement("C8.5")
@pytest.mark.parametrize("peer", ["", "mcp:far"])
async def test_a_call_of_a_peer_is_published_between_its_decision_and_its_start(
    tmp_path: Path, peer: str
) -> None:
    async with open_test_app(tmp_path / "home") as app:
        call = app.make("system_time", {}, peer=peer)
        await app.invoke(call)
        events = [event for event in await app.events() if event.call_id == call.id]
    kinds = ["policy_decision", "tool_invocation_start", "tool_invocation_end"]
    assert [event.event_type for event in events] == [
        *kinds[:1],
        *["event_published"] * bool(peer),
        *kinds[1:],
    ]
    if peer:
        told = events[1].payload
        assert (events[1].level, told["event"], told["labels"]) == ("info", "EXEC:TOOL_CALL", [])
        assert told["payload"] == {
            "tool": "builtin:system_time",
            "peer": peer,
            "caller": app.caller.id,
            "trace": call.chain.trace,
            "depth": 1,
            "path": [],
        }
