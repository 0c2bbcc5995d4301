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
