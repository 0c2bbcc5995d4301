"""What happens at one node is known at every other at once, and not when it looks next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.app.a2a.test_peers import entry
from tests.cluster.house import homes
from tests.cluster.opened import opened
from tests.pipeline.tasks.scene import Held, says
from tests.sources.a2a.web_peers import SeedPeer, serving
from tests.sources.test_skills import DATA

from openfang.app import timers as looking
from openfang.app.installs.door import Door
from openfang.core.errors import NotFound, Parked
from openfang.core.ids import Kind
from openfang.core.keys import Way
from openfang.core.tasks import Push, Sent
from openfang.core.tools import Risk
from openfang.host.parcels import pack
from openfang.policy import waits
from openfang.storage.timers import Timer
from openfang.testing.sources import TableSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

    from openfang.app.a2a.peers import Peers
    from openfang.app.installs.house import Installs
    from openfang.testing.app import OpenApp

pytestmark = pytest.mark.requirement("C13.3")
TOOL = "mcp:demo:deploy"


async def done(_: Mapping[str, Any]) -> str:
    return "done"


def source() -> TableSource:
    facts = {"risk": Risk.HIGH, "tags": frozenset({"cloud.resource_create"})}
    return TableSource(Kind.MCP, "demo", {"deploy": (facts, done)})


@pytest.fixture
def nodes(make_home: Callable[[], Cli], empty_postgres: str) -> list[Node]:
    return homes(make_home, empty_postgres, "ab")


@pytest.fixture
async def two(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[OpenApp]]:
    monkeypatch.setattr(waits, "_LOOK_SECONDS", 60.0)
    monkeypatch.setattr(looking, "_LOOK", 60.0)
    async with opened(nodes) as apps:
        yield apps


@pytest.mark.requirement("C15.1")
async def test_a_call_goes_on_when_its_question_is_answered_at_another_node(
    two: list[OpenApp],
) -> None:
    a, b = two
    for app in two:
        app.add(source())
    results = list[str]()

    async def wait() -> None:
        call = a.make(TOOL, {"to": "prod"}, patience=30.0)
        results.append((await a.invoke(call)).text)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            while not (waiting := await b.parts.approvals.store.pending(0)):
                await anyio.lowlevel.checkpoint()
            answer = b.parts.approvals.answer
            await answer(waiting[0].id, approve=True, by=b.caller.id, via=Way.API)
    assert results == ["done"]
    with pytest.raises(Parked):  # it was spent once, for all nodes
        await b.invoke(b.make(TOOL, {"to": "prod"}))


async def until(so: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not so():
            await anyio.lowlevel.checkpoint()


def offering(*tools: str, said: str = "It helps.") -> TableSource:
    return TableSource(Kind.MCP, "demo", {tool: ({"description": said}, done) for tool in tools})


@pytest.mark.requirement("C1.2", "C1.3")
async def test_nodes_that_name_tools_at_the_same_moment_end_with_the_same_names(
    two: list[OpenApp],
) -> None:
    a, b = two
    a.add(offering("x-y", "only-a"))  # both would be mcp_demo_x_y
    b.add(offering("x_y", "only-a"))
    ids = {f"mcp:demo:{name}" for name in ("x-y", "x_y", "only-a")}
    for app in two:
        await until(lambda app=app: ids <= app.parts.registry.names.names.keys())
        for tool in app.parts.registry.snapshot.tools.values():
            assert tool.wire_name == app.parts.registry.names.names[tool.id]
    names, others = (app.parts.registry.names.names for app in two)
    assert names == others
    assert len(set(names.values())) == len(names)
    assert {names[one] for one in ids} > {"mcp_demo_x_y", "mcp_demo_only_a"}
    rows = await a.parts.database.read("SELECT tool, wire_name FROM names")
    assert dict(rows) == names


@pytest.mark.requirement("C2.9")
async def test_what_is_accepted_at_one_node_is_held_back_at_none(two: list[OpenApp]) -> None:
    a, b = two
    tool = "mcp:demo:help"
    for app in two:
        app.add(offering("help"))
    for app in two:
        app.add(offering("help", said="It helps more."))
        assert tool in app.parts.registry.snapshot.held
    b.parts.registry.accept(tool)
    await until(lambda: tool not in a.parts.registry.snapshot.held)
    assert a.parts.registry.snapshot.tools[tool].hold == ""


@pytest.mark.requirement("C2.9")
async def test_of_two_first_sights_at_the_same_moment_one_is_held_back(two: list[OpenApp]) -> None:
    a, b = two
    tool = "mcp:demo:help"
    a.add(offering("help"))
    b.add(offering("help", said="It helps more."))
    held = [app.parts.registry.snapshot.held for app in two]
    assert held == [{}, {}]
    await until(lambda: any(tool in app.parts.registry.snapshot.held for app in two))
    pins = {app.parts.registry.board.pins[tool].digest for app in two}
    rows = await a.parts.database.read("SELECT digest FROM pins WHERE tool = ?", (tool,))
    assert pins == {rows[0][0]}
    assert sum(tool in app.parts.registry.snapshot.held for app in two) == 1


async def test_an_install_is_at_those_nodes_that_have_its_files_and_removed_at_all(
    two: list[OpenApp],
) -> None:
    a, b = two
    parcel = await to_thread.run_sync(pack, DATA / "release-notes")
    for app in two:
        await _installs(app).settled()
    doors = [Door(app.parts, app.caller) for app in two]
    review = await doors[0].install("skill", parcel, "here")
    await doors[0].enable(review.id, review.digest)
    tool = "ext:release-notes:read"
    await until(lambda: "not on this node" in _installs(b).held.get(review.id, ""))
    assert a.parts.registry.find(tool)
    assert b.parts.registry.find(tool) is None
    assert (await doors[1].found(review.id)).enabled
    await doors[1].install("skill", parcel, "here, too")
    await until(lambda: b.parts.registry.find(tool) is not None)
    await doors[1].disable(review.id)
    await until(lambda: a.parts.registry.find(tool) is None)
    await doors[1].remove(review.id)
    with pytest.raises(NotFound):
        await doors[0].found(review.id)


@pytest.mark.requirement("C5.6")
async def test_what_one_node_plans_another_one_does(two: list[OpenApp]) -> None:
    a, b = two
    seen, done = list[str](), anyio.Event()

    async def run(timer: Timer) -> None:
        seen.append(timer.subject)
        done.set()

    a.parts.timers.register("test", run)  # b does not know how
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(a.parts.timers.run)
            await anyio.wait_all_tasks_blocked()
            now = b.parts.clock.time_ns()
            await b.parts.timers.plan(Timer(id="t", kind="test", subject="it", due=now))
            await done.wait()
            group.cancel_scope.cancel()
    assert seen == ["it"]


@pytest.mark.requirement("C5.6")
async def test_who_asked_one_node_to_be_told_of_a_task_is_told_by_whichever_works_on_it(
    nodes: list[Node],
) -> None:
    for node in nodes:
        await to_thread.run_sync(node.cli.configure, "[a2a.push]\nallow_private = true")
    async with opened(nodes) as (a, b):
        held, tasks = Held(), a.parts.tasks
        sent = Sent(agent="echo", message=says("go"))
        task = await tasks.begin(sent, caller="key:me", context="", session="s", work=held)
        for name in ("kept", "deleted"):
            await b.parts.pushes.set(Push(id=name, task=task.id, url="http://127.0.0.1:9/"))
        await a.parts.pushes.set(Push(id="own", task=task.id, url="http://127.0.0.1:9/"))
        await b.parts.pushes.delete(task.id, "deleted")
        held.go.set()
        with anyio.fail_after(30):
            ended = await b.parts.tasks.settled(task.id)
        waiting = await b.parts.timers.store.soonest("push", 10)
        assert sorted((one.body["push"], one.body["n"]) for one in waiting) == [
            ("kept", ended.version),
            ("own", ended.version),
        ]


class Growing(SeedPeer):
    """A peer that says more of itself from one moment on."""

    description = "Speaks loudly"

    def card(self, url: str) -> dict[str, Any]:
        return {**super().card(url), "description": self.description}


@pytest.mark.requirement("C5.8")
async def test_how_a_peer_introduced_itself_to_one_node_is_known_at_every_other(
    nodes: list[Node],
) -> None:
    peer = Growing()
    async with serving(peer) as url:
        for node in nodes:
            await to_thread.run_sync(node.cli.configure, entry("echo", url))
        async with opened(nodes) as (a, b):
            for app in (a, b):
                await _peers(app).settled()
            peer.description = "Speaks softly"
            await _peers(a).again("echo")
            await until(lambda: _card_of(b) == "Speaks softly")
            assert peer.asked.count("GET /.well-known/agent.json") == 3  # b did not ask again
            held = [app.parts.registry.snapshot.held.keys() for app in (a, b)]
            assert held == [{"a2a:echo"}] * 2


def _installs(app: OpenApp) -> Installs:
    assert app.parts.installs
    return app.parts.installs


def _peers(app: OpenApp) -> Peers:
    assert app.parts.peers
    return app.parts.peers


def _card_of(app: OpenApp) -> str:
    card = _peers(app).find("echo").source.card
    return card.description if card else ""
