"""What an open home forgets: runs that nobody goes on with."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from openfang.agents.sessions import StoredSessions
from openfang.app.lifespan import sign_head
from openfang.core.agents import Ended, Message, Speaker
from openfang.core.ids import Kind
from openfang.core.labels import Labels
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk
from openfang.storage.database import at_once
from openfang.storage.state import RunStore
from openfang.testing import ManualClock, TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C9.1")
DAY = 86_400
SEEN = Labels.EXTERNAL_NETWORK


async def page(arguments: Mapping[str, Any]) -> Result:
    del arguments
    return text_result("from far away", labels=SEEN)


async def echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments)


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[tuple[OpenApp, ManualClock]]:
    """A home in which the run `r` of an agent has seen something."""
    harmless = {"risk": Risk.LOW, "tags": frozenset[str]()}
    tools = {"page": (harmless, page), "echo": (harmless, echo)}
    clock = ManualClock()
    source = TableSource(Kind.MCP, "demo", tools)
    async with open_test_app(folder, clock=clock, sources=[source]) as app:
        await app.invoke(app.make("mcp:demo:page", {}, run="r", asker="somebody"))
        yield app, clock


def held(app: OpenApp) -> Labels:
    return at_once(RunStore(app.parts.database).labels("r"))


async def test_a_run_that_nobody_goes_on_with_is_forgotten_after_a_week(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, clock):
        clock.advance(7 * DAY - 1)
        await sign_head(app.parts)
        assert held(app) == SEEN
        clock.advance(1)
        await sign_head(app.parts)
        assert held(app) == Labels.NONE


async def test_one_that_is_gone_on_with_is_not_though_nothing_new_enters_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, clock):
        for day in range(5):
            clock.advance(2 * DAY)
            await app.invoke(app.make("mcp:demo:echo", {"day": day}, run="r", asker="somebody"))
            await sign_head(app.parts)
        assert held(app) == SEEN


async def test_one_that_an_agent_has_not_ended_is_kept_until_it_has(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, clock):
        parts = app.parts
        sessions = StoredSessions(
            database=parts.database,
            writer=parts.writer,
            process=parts.broker.process,
            now=clock.time_ns,
        )
        session = (await sessions.open("a", "key:me", "default", most=20)).id
        asked = Message(speaker=Speaker.USER, text="go")
        await sessions.begin(session, "r", asked, Labels.NONE)
        clock.advance(30 * DAY)
        await sign_head(parts)
        assert held(app) == SEEN
        await sessions.end(session, "r", Ended(answer=""), SEEN)
        await sign_head(parts)
        assert held(app) == Labels.NONE
