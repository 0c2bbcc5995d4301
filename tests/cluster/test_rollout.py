"""Nodes whose files differ for a while, and what they count together."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.app.a2a.test_peers import entry
from tests.app.schedules.calendar import manifest
from tests.cluster.house import homes
from tests.cluster.opened import opened
from tests.sources.a2a.web_peers import SeedPeer, serving

from openfang.config.load import load
from openfang.storage.peers import PeerStore
from openfang.storage.schedules import ScheduleStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

    from openfang.testing.app import OpenApp

pytestmark = pytest.mark.requirement("C13.3")
HOURLY = '[schedule.periodic]\ncron = "0 * * * *"\n'
TRIGGER = """
[[triggers]]
name = "builds"
event = "build.*"
agent = "clerk"
max_per_hour = 3
"""


@pytest.fixture
def nodes(make_home: Callable[[], Cli], empty_postgres: str) -> list[Node]:
    return homes(make_home, empty_postgres, "ab", TRIGGER)


def put(node: Node, text: str) -> Path:
    folder = node.cli.home / "agents" / "clerk"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.toml").write_text(text)
    return folder


async def scheduled(*nodes: Node) -> list[str]:
    """Let nodes read their manifests; returns for which agents there are schedules then."""
    async with opened(nodes) as apps:
        for app in apps:
            assert app.parts.agents
            app.parts.agents.want(resume=True)
            with anyio.fail_after(20):
                await (await app.parts.agents.opened()).recovered.wait()
        found = await ScheduleStore(apps[0].parts.database).of_manifests()
        return [one.agent for one in found]


async def test_a_schedule_stays_as_long_as_the_manifest_of_any_node_asks_for_it(
    nodes: list[Node],
) -> None:
    a, b = nodes
    folder = await to_thread.run_sync(put, a, manifest("clerk", more=HOURLY))
    assert await scheduled(a) == ["clerk"]
    assert await scheduled(b) == ["clerk"]  # a may be on its way back
    assert await scheduled(a, b) == ["clerk"]
    await to_thread.run_sync(shutil.rmtree, folder)
    assert await scheduled(a) == []


async def peers(*nodes: Node) -> set[str]:
    """Let nodes meet their peers; returns of whom something is kept then."""
    async with opened(nodes) as apps:
        for app in apps:
            assert app.parts.peers
            app.parts.peers.want()
            await app.parts.peers.settled()
        return {*await PeerStore(apps[0].parts.database).all()}


@pytest.mark.requirement("C5.8")
async def test_what_is_known_of_a_peer_stays_as_long_as_the_file_of_any_node_names_it(
    nodes: list[Node],
) -> None:
    a, b = nodes
    config = a.cli.home / "config.toml"
    before = await to_thread.run_sync(config.read_text)
    async with serving(SeedPeer()) as url:
        await to_thread.run_sync(a.cli.configure, entry("old", url))
        await to_thread.run_sync(b.cli.configure, entry("new", url))
        assert await peers(a) == {"old"}
        assert await peers(b) == {"old", "new"}
        await to_thread.run_sync(config.write_text, f"{before}{entry('new', url)}")
        assert await peers(a) == {"new"}


@pytest.mark.requirement("C5.8")
async def test_a_peer_that_came_with_a_reload_is_named_to_the_other_nodes(
    nodes: list[Node],
) -> None:
    a, b = nodes
    async with serving(SeedPeer()) as url:
        await to_thread.run_sync(a.cli.configure, entry("old", url))
        await to_thread.run_sync(b.cli.configure, entry("new", url))
        async with opened((a,)) as (app,):
            assert app.parts.peers
            app.parts.peers.want()
            await app.parts.peers.settled()
            await to_thread.run_sync(a.cli.configure, entry("late", url))
            environ = {"HOME": str(a.cli.home)}
            app.parts.config = await to_thread.run_sync(load, a.cli.home, environ)
            app.parts.peers.apply(app.parts.config)
            await app.parts.peers.settled()
            with anyio.fail_after(30):
                while "late" not in await asked(app):  # noqa: ASYNC110 - told in the background
                    await anyio.sleep(0.01)
        assert await peers(b) == {"old", "late", "new"}


async def asked(app: OpenApp) -> set[str]:
    rows = await app.parts.database.read("SELECT name FROM asked WHERE kind = 'peer'")
    return {row[0] for row in rows}


async def published(app: OpenApp) -> list[str]:
    call = app.make("event_publish", {"event_type": "build.failed"})
    told: Any = (await app.invoke(call)).structured
    return told["triggered"]


async def test_a_trigger_starts_so_often_in_an_hour_on_all_nodes_together(
    nodes: list[Node],
) -> None:
    for node in nodes:
        await to_thread.run_sync(put, node, manifest("clerk"))
    async with opened(nodes) as (a, b):
        started = [await published(app) for app in (a, b, a, b, a, b)]
        assert started == [["builds"]] * 3 + [[]] * 3
        rows = await a.parts.database.read("SELECT COUNT(*) FROM timers WHERE kind = 'trigger'")
        assert rows == [(3,)]
