"""Who comes in: named keys with their edges, roles, limits and ends (C18.1)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.edges.live import live

from openfang.app.admin import Admin
from openfang.core.errors import Conflict
from openfang.core.keys import Key
from openfang.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C18.1", "C7.1")


async def caller(node: Live, headers: dict[str, str]) -> str:
    reply = await node.get("/api/status", key=None, headers=headers)
    return reply.json["caller"] if reply.status == 200 else reply.problem["rule"]


async def test_a_key_comes_as_bearer_or_in_a_header_of_its_own(node: Live) -> None:
    secret = await node.key("someone")
    for headers in (
        {"Authorization": f"Bearer {secret}"},
        {"Authorization": f"bearer   {secret}"},
        {"X-Api-Key": secret},
        {"Authorization": "Basic dXNlcjpwYXNz", "X-Api-Key": secret},
    ):
        assert await caller(node, headers) == "key:someone"
    for headers in (
        {"Authorization": secret},
        {"Authorization": f"Basic {secret}"},
        {"Authorization": f"Bearer{secret}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {secret}x"},
        {"X-Api-Key": ""},
        {"X-Api-Key": "\xff\xfe"},
        {"Cookie": f"key={secret}"},
    ):
        assert await caller(node, headers) == "unauthenticated"
    assert (await node.get(f"/api/status?key={secret}", key=None)).status == 401


async def test_the_key_of_the_configuration_is_no_administrator(tmp_path: Path) -> None:
    async with live(tmp_path / "home", config='api_key = "a-key-of-my-own"\n') as node:
        status = (await node.get("/api/status", key="a-key-of-my-own")).json
        assert (status["caller"], status["role"]) == ("key:config", "user")
        assert (await node.get("/api/keys", key="a-key-of-my-own")).status == 403
        shown = await node.get("/api/config")
        assert b"a-key-of-my-own" not in shown.body
        assert shown.json["config"]["api_key"] == "***"
        assert (await node.post("/api/keys", {"name": "config"})).told == (409, "conflict")


async def test_a_key_ends_when_it_expires(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        secret = await node.key("guest", ttl_secs=60)
        clock.advance(59.5)
        assert (await node.get("/api/version", key=secret)).status == 200
        clock.advance(0.5)
        assert (await node.get("/api/version", key=secret)).told == (401, "unauthenticated")
        states = {key["name"]: key["state"] for key in (await node.get("/api/keys")).json["keys"]}
        assert states == {"admin": "in force", "guest": "expired"}


async def test_a_key_ends_at_once_when_it_is_revoked(node: Live) -> None:
    key, secret = await node.new("guest")
    assert (await node.get("/api/version", key=secret)).status == 200
    ended = await node.ask("DELETE", "/api/keys/guest")
    assert (ended.status, ended.json["state"]) == (200, "revoked")
    assert ended.json["revoked_at"]
    assert (await node.get("/api/version", key=secret)).told == (401, "unauthenticated")
    assert (await node.ask("DELETE", "/api/keys/guest")).told == (404, "not_found")
    again = await node.post("/api/keys", {"name": "guest"})
    assert (again.told, again.problem["way_out"]) == ((409, "conflict"), "choose another name")
    assert key.id == ended.json["id"]


async def test_a_key_is_revoked_by_its_id_too(node: Live) -> None:
    key, secret = await node.new("guest")
    assert (await node.ask("DELETE", f"/api/keys/{key.id}")).status == 200
    assert (await node.get("/api/version", key=secret)).status == 401


async def test_the_last_administrator_stays(tmp_path: Path) -> None:
    clock = ManualClock()
    async with live(tmp_path / "home", clock=clock) as node:
        await node.key("second", role="admin", ttl_secs=60)
        clock.advance(61)
        assert (await node.ask("DELETE", "/api/keys/admin")).told == (409, "conflict")
        await node.key("third", role="admin")
        assert (await node.ask("DELETE", "/api/keys/admin")).status == 200
        assert (await node.get("/api/keys")).status == 401


async def test_a_key_for_another_edge_does_not_open_this_one(node: Live) -> None:
    elsewhere = await node.key("elsewhere", edges=["mcp", "a2a"])
    assert (await node.get("/api/version", key=elsewhere)).told == (403, "edge")
    here = await node.key("here", edges=["api"])
    assert (await node.get("/api/version", key=here)).status == 200
    assert (await node.post("/api/keys", {"name": "odd", "edges": ["nowhere"]})).status == 422


async def test_a_key_grants_what_it_says_and_no_more(node: Live, demo: Demo) -> None:
    narrow = await node.key("narrow", tools=["mcp:demo:echo"])
    assert (await node.call("mcp:demo:echo", key=narrow)).status == 200
    assert (await node.call("mcp:demo:write", key=narrow)).status == 404
    assert (await node.call("system_time", key=narrow)).status == 404
    assert demo.source.reached == 1


async def test_a_name_is_taken_once(node: Live) -> None:
    await node.key("twin")
    assert (await node.post("/api/keys", {"name": "twin"})).told == (409, "conflict")
    token = {"name": "twin", "kind": "admin_token"}
    assert (await node.post("/api/keys", token)).told == (409, "conflict")


async def test_every_refusal_of_a_key_is_on_record(node: Live) -> None:
    await node.get("/api/version", key="of_unknown")
    found = (await node.get("/api/audit?event=policy_violation")).json["records"]
    assert [(one["payload"]["rule"], one["context"]) for one in found] == [
        ("unauthenticated", {"caller": "nobody"})
    ]


@pytest.mark.requirement("C12.1")
async def test_without_require_key_this_machine_calls_as_local_mcp_and_never_as_admin(
    tmp_path: Path, demo: Demo
) -> None:
    config = "[auth]\nrequire_key = false\n"
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        status = (await node.get("/api/status", key=None)).json
        assert (status["caller"], status["role"]) == ("local-mcp", "user")
        assert (await node.call("mcp:demo:echo", key=None)).status == 200
        for path in ("/api/keys", "/api/audit", "/api/config", "/metrics"):
            assert (await node.get(path, key=None)).status == 403
        assert (await node.post("/api/config/reload", key=None)).told == (403, "admin_only")
        question = (await node.call("mcp:demo:deploy", key=None)).problem["approval"]
        answer = await node.post(f"/api/approvals/{question}", {"answer": "approve"}, key=None)
        assert answer.told == (403, "role")
        # A credential that is there counts, and a wrong one is not overlooked.
        assert (await node.get("/api/status")).json["role"] == "admin"
        assert (await node.get("/api/status", key="of_wrong")).status == 401
        assert {event.context["caller"] for event in await node.events()} == {"local-mcp"}


async def test_a_key_that_is_revoked_while_its_request_is_on_the_way_does_nothing(
    node: Live,
) -> None:
    secret = await node.key("late", role="admin")
    body = b'{"name": "made-too-late", "role": "admin"}'
    client = await node.client()
    head = node.request(
        "POST", "/api/keys", f"Content-Length: {len(body)}", "Content-Type: application/json"
    )
    await client.send(head.replace(node.admin.encode(), secret.encode()) + body[:3])
    assert (await node.get("/api/version")).status == 200  # by now the head has been read
    assert (await node.ask("DELETE", "/api/keys/late")).status == 200
    await client.send(body[3:])
    reply = await client.answer()
    assert reply.status == 401
    named = [key["name"] for key in (await node.get("/api/keys")).json["keys"]]
    assert "made-too-late" not in named


async def statuses(asked: Iterable[Awaitable[Reply]]) -> list[int]:
    return sorted([reply.status for reply in await asyncio.gather(*asked)])


async def test_of_two_who_want_one_name_at_once_one_gets_it(tmp_path: Path) -> None:
    async with live(tmp_path / "home", config="[audit]\nfsync = true\n") as node:
        body = {"name": "twin"}
        found = await statuses(node.post("/api/keys", body) for _ in range(5))
        assert found == [201, 409, 409, 409, 409]
        names = [key["name"] for key in (await node.get("/api/keys")).json["keys"]]
        assert names == ["admin", "twin"]


async def test_two_administrators_cannot_end_each_other_at_once(tmp_path: Path) -> None:
    async with live(tmp_path / "home", config="[audit]\nfsync = true\n") as node:
        await node.key("second", role="admin")
        admin = Admin(node.app.parts, node.app.caller)
        ending = (admin.revoke_key(name) for name in ("admin", "second", "second"))
        ended = await asyncio.gather(*ending, return_exceptions=True)
        assert [type(one) for one in ended] == [Key, Conflict, Conflict]


async def test_an_administrator_who_leaves_soon_is_not_the_one_who_stays(node: Live) -> None:
    await node.key("guest", role="admin", ttl_secs=60)
    assert (await node.ask("DELETE", "/api/keys/admin")).told == (409, "conflict")
    assert (await node.ask("DELETE", "/api/keys/guest")).status == 200


async def test_a_rate_below_the_cost_of_a_call_is_refused(tmp_path: Path) -> None:
    config = "[limits.costs]\ncall = 7\n"
    async with live(tmp_path / "home", config=config) as node:
        reply = await node.post("/api/keys", {"name": "slow", "cells_per_minute": 6})
        assert (reply.told, "at least 7" in reply.problem["way_out"]) == ((409, "conflict"), True)
        slow = await node.key("slow", cells_per_minute=7)
        assert (await node.call("system_time", key=slow)).status == 200


async def test_a_refusal_names_the_least_that_would_do(node: Live) -> None:
    user, elsewhere = await node.key("user"), await node.key("elsewhere", edges=["mcp"])
    asked = {
        "--role auditor": await node.get("/api/audit", key=user),
        "--role approver": await node.post("/api/approvals/x", {"answer": "deny"}, key=user),
        "--role admin": await node.get("/api/keys", key=user),
        "--edge api": await node.get("/api/version", key=elsewhere),
    }
    for word, reply in asked.items():
        assert reply.problem["way_out"].endswith(f"openfang keys create NAME {word}")


@pytest.mark.requirement("C15.1")
async def test_nobody_but_an_administrator_approves_what_they_asked(node: Live, demo: Demo) -> None:
    approver = await node.key("approver", role="approver")
    other = await node.key("other", role="approver")
    for key, status in ((approver, 403), (other, 200)):
        question = (await node.call("mcp:demo:deploy", key=approver)).problem["approval"]
        path = f"/api/approvals/{question}"
        reply = await node.post(path, {"answer": "approve"}, key=key)
        assert reply.status == status
        assert reply.status == 200 or reply.problem["rule"] == "own_question"
    assert (await node.call("mcp:demo:deploy", key=approver)).status == 200
    question = (await node.call("mcp:demo:deploy", key=approver)).problem["approval"]
    denied = await node.post(f"/api/approvals/{question}", {"answer": "deny"}, key=approver)
    assert (denied.status, denied.json["state"]) == (200, "denied")
    mine = (await node.call("mcp:demo:deploy")).problem["approval"]
    assert (await node.post(f"/api/approvals/{mine}", {"answer": "approve"})).status == 200
    assert demo.source.reached == 1
