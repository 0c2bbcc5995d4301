"""Two who take over the same servers at once: what one has written, the other need not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from openfang.app.connect.importing import plan
from openfang.app.local import Local
from openfang.cli.imports import NOT_WRITTEN, taken_over
from openfang.config.foreign import Foreign
from openfang.core.trace import new_chain
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.app.connect.importing import Planned
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C2.3")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[OpenApp]:
    async with open_test_app(tmp_path / "home") as app:
        yield app


def planned(word: str) -> Planned:
    """What somebody planned who looked before anything was there."""
    transport = {"type": "stdio", "command": sys.executable, "args": [word]}
    entry = {"transport": transport}
    foreign = Foreign(name="shop", client="Cursor", file=Path("mcp.json"), entry=entry)
    (one,) = plan([foreign], [], frozenset())
    assert not one.skipped
    return one


async def test_what_was_written_since_it_was_planned_counts_as_written(app: OpenApp) -> None:
    session = Local(app.parts, app.caller, new_chain(), "api")
    first, second = planned("a.py"), planned("a.py")
    assert await taken_over(session, first) == first
    assert await taken_over(session, second) == second
    assert [one.name for one in app.parts.config.mcp_servers] == ["shop"]


async def test_another_server_of_the_same_name_is_not_taken_for_it(app: OpenApp) -> None:
    session = Local(app.parts, app.caller, new_chain(), "api")
    await taken_over(session, planned("a.py"))
    told = (await taken_over(session, planned("b.py"))).skipped
    assert told == f"{NOT_WRITTEN}: There is an MCP server shop already."
