"""Every way into a node, tried by whoever has no business there; one node for all of it.

`doors.py` reads the node's own tables, so what is added to them is tried here without a word.
"""

from __future__ import annotations

from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.doors import CANARY, PUBLIC, TOKEN, all_doors, public_doors, scene

from openfang.edges.a2a import places
from openfang.edges.cluster import edge as cluster
from openfang.edges.mcp import http as mcp
from openfang.edges.openai import edge as openai
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.edges.demo import Demo
    from tests.edges.doors import Door, Scene
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C12.1", "C12.2", "C18.1")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
# The other ways to write an address, of which a careless check takes one for what is public.
DISGUISES = (
    "{}/", "/{}", "{}?/api/health", "{}#/api/health", "{}/.well-known/agent.json", "{};/api/health",
    "/api/health/..{}", "/api/health/%2e%2e{}", "/.well-known/agent.json/../..{}", "{}%00", "{}%20",
    "/%2e{}", "/.{}", "{}.json", "{}%3f/api/health",
)  # fmt: skip
FOREIGN = (
    (421, {"Host": "rebound.example"}),
    (403, {"Origin": "http://rebound.example"}),
    (403, {"Origin": "null"}),
)
NARROW: dict[str, Any] = {"tools": ["builtin:system_time"], "agents": [], "toolsets": []}


async def bad_keys(node: Live, clock: ManualClock) -> dict[str, str | None]:
    """Whatever is no key: none, one that is made up, has ended, or opens something else."""
    revoked = await node.key("revoked", role="admin")
    expired = await node.key("expired", role="admin", ttl_secs=60)
    assert (await node.get("/api/keys", key=revoked)).status == 200
    assert (await node.get("/api/keys", key=expired)).status == 200
    assert (await node.ask("DELETE", "/api/keys/revoked")).status == 200
    clock.advance(60)
    return {
        "nobody": None,
        "a made-up key": f"of_{token_urlsafe(32)}",
        "a revoked key": revoked,
        "an expired key": expired,
        "an admin token": await node.key("token", kind="admin_token"),
        "a key with more behind it": f"{node.admin}x",
        "the beginning of a key": node.admin[:-1],
        "a key in capitals": node.admin.upper(),
    }


async def elsewhere(node: Live) -> dict[str, str]:
    """For each edge an administrator's key that opens all the others."""
    edges = {"api", "mcp", "a2a", "openai"}
    return {
        edge: await node.key(f"not-for-{edge}", role="admin", edges=sorted(edges - {edge}))
        for edge in edges
    }


async def test_every_door_is_shut_to_who_has_no_key_for_it(tmp_path: Path, demo: Demo) -> None:
    clock = ManualClock()
    async with scene(tmp_path / "home", demo, clock) as told:
        keys, others = await bad_keys(told.node, clock), await elsewhere(told.node)
        doors = await all_doors(told)
        before = await told.state()
        for door in (one for one in doors if one.access != PUBLIC):
            for who, key in keys.items():
                reply, where = await told.knock(door, key), f"{door}: {who}"
                assert (where, reply.status) == (where, 401)
                assert reply.headers["WWW-Authenticate"].startswith("Bearer")
            reply, where = await told.knock(door, others[door.edge]), f"{door}: another edge"
            assert (where, reply.status) == (where, 401 if door.access == TOKEN else 403)
        assert await told.state() == before
        await understood(told, doors)
        assert await told.state() != before


async def understood(told: Scene, doors: list[Door]) -> None:
    """See that what was refused was no nonsense: who may is answered."""
    for door in (one for one in doors if one.access != TOKEN):  # an administrator has none
        reply, where = await told.knock(door, ""), str(door)
        nonsense = {400, 422} if door.edge == "api" else set[int]()
        assert (where, reply.status in {401, 403, 405, 415} | nonsense) == (where, False)
        assert (where, reply.status < 500) == (where, True), reply.body


@pytest.mark.requirement("C7.3", "C5.5", "C4.7")
async def test_a_key_that_is_too_narrow_opens_nothing_of_anybody_elses(
    tmp_path: Path, demo: Demo
) -> None:
    async with scene(tmp_path / "home", demo) as told:
        narrow = await told.node.key("narrow", **NARROW)
        before, doors = await told.state(), await all_doors(told)
        for door in doors:
            reply, where = await told.knock(door, narrow), str(door)
            assert (where, reply.status < 500) == (where, True), reply.body
            assert (where, CANARY.encode() in reply.body) == (where, False)
            if door.access not in {PUBLIC, "key"}:
                shut = 401 if door.access == TOKEN else 403
                assert (where, reply.status) == (where, shut)
        assert await told.state() == before
        sessions = [door for door in doors if "Mcp-Session-Id" in door.headers]
        assert [(await told.knock(door, "")).status for door in sessions] == [200] * len(sessions)


@pytest.mark.requirement("C7.6", "C7.7")
async def test_a_key_that_may_only_plan_reaches_no_tool_with_an_effect_by_any_door(
    tmp_path: Path, demo: Demo
) -> None:
    async with scene(tmp_path / "home", demo) as told:
        planner = await told.node.key("planner", mode="planning", projects=["default"])
        before = demo.source.reached
        for door in await all_doors(told):
            reply, where = await told.knock(door, planner), str(door)
            assert (where, reply.status < 500) == (where, True), reply.body
        assert demo.source.reached == before


async def test_no_door_opens_to_a_foreign_name_or_a_foreign_page(
    tmp_path: Path, demo: Demo
) -> None:
    """Not even with an administrator's key: a browser that was tricked may have one."""
    async with scene(tmp_path / "home", demo) as told:
        before, doors = await told.state(), await all_doors(told)
        for door in doors:
            for status, more in FOREIGN:
                reply, where = await told.knock(door, "", **more), f"{door}: {more}"
                assert (where, reply.status) == (where, status)
        assert await told.state() == before


async def test_no_other_method_and_no_disguise_opens_a_door_without_a_key(
    tmp_path: Path, demo: Demo
) -> None:
    async with scene(tmp_path / "home", demo) as told:
        before, doors = await told.state(), await all_doors(told)
        open_to_all = {door.path for door in doors if door.access == PUBLIC}
        for path in sorted({door.path for door in doors} - open_to_all):
            for method in METHODS:
                reply = await told.node.ask(method, path, key=None)
                assert (method, path, reply.status) == (method, path, 401)
            for written in {one.format(path) for one in DISGUISES} - open_to_all:
                reply = await told.node.get(written, key=None)
                assert (written, reply.status) == (written, 401)
        assert await told.state() == before


async def test_what_is_public_is_a_short_list_and_only_tells(tmp_path: Path, demo: Demo) -> None:
    async with scene(tmp_path / "home", demo) as told:
        before, doors = await told.state(), await all_doors(told)
        public = [door for door in doors if door.access == PUBLIC]
        assert {door.route for door in public} == set(public_doors())
        for door in public:
            assert door.method in {"GET", "HEAD"}
            reply, where = await told.knock(door, None), str(door)
            assert (where, reply.status) in {(where, 200), (where, 404)}
            assert (where, CANARY.encode() in reply.body) == (where, False)
            for method in set(METHODS) - {"GET", "HEAD"}:
                status = (await told.node.ask(method, door.path, key=None)).status
                assert (method, where, status in {401, 405}) == (method, where, True)
        assert await told.state() == before


@pytest.mark.requirement("C13.3")
async def test_what_is_for_other_nodes_is_not_there_where_there_are_none(
    tmp_path: Path, demo: Demo
) -> None:
    """`tests/cluster/test_singletons.py` knocks where there are some."""
    async with scene(tmp_path / "home", demo) as told:
        for method in ("GET", "POST", "DELETE"):
            for headers in ({}, {"OpenFang-Member": "a;1;2;3;4"}):
                path = f"{cluster.ROUTE}?server=demo&term=1"
                nobody = await told.node.ask(method, path, key=None, headers=headers)
                admin = await told.node.ask(method, path, headers=headers)
                assert (nobody.status, admin.status) == (401, 404)


def test_the_tables_name_every_address() -> None:
    """An address that is not in them would be tried by nobody."""
    assert addresses(cluster) == {cluster.ROUTE}
    assert addresses(places) == {*places.ROUTES, places.REST, places.NOTHING}
    assert addresses(mcp) == set(mcp.ROUTES)
    assert addresses(openai) == {*openai.ROUTES, openai.NOTHING}


def addresses(module: ModuleType) -> set[str]:
    """The constants of a module that are addresses."""
    known = vars(module).items()
    return {one for name, one in known if name.isupper() and str(one).startswith("/")}
