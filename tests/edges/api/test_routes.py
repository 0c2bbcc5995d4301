"""Every route with what it requires: written down here once more, and really asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.live import live

from openfang.edges.a2a import places
from openfang.edges.api.table import ENDPOINTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C12.1", "C12.2", "C18.1")

TABLE = {
    ("GET", "/api/health"): "public",
    ("GET", "/api/ready"): "public",
    ("GET", "/api/version"): "key",
    ("GET", "/api/status"): "key",
    ("GET", "/api/openapi.json"): "key",
    ("GET", "/api/tools"): "key",
    ("GET", "/api/tools/{id}"): "key",
    ("POST", "/api/tools/{id}/call"): "key",
    ("POST", "/api/tools/{id}/explain"): "key",
    ("POST", "/api/tools/{id}/accept"): "admin",
    ("GET", "/api/mcp/servers"): "key",
    ("GET", "/api/mcp/health"): "key",
    ("POST", "/api/mcp/servers/refresh"): "admin",
    ("POST", "/api/mcp/servers"): "admin",
    ("GET", "/api/mcp/servers/{name}"): "auditor",
    ("DELETE", "/api/mcp/servers/{name}"): "admin",
    ("GET", "/api/mcp/servers/{name}/logs"): "auditor",
    ("POST", "/api/mcp/servers/{name}/test"): "admin",
    ("POST", "/api/mcp/servers/{name}/restart"): "admin",
    ("POST", "/api/mcp/servers/{name}/enable"): "admin",
    ("POST", "/api/mcp/servers/{name}/disable"): "admin",
    ("POST", "/api/mcp/servers/{name}/login"): "admin",
    ("POST", "/api/mcp/servers/{name}/logout"): "admin",
    ("GET", "/api/held"): "auditor",
    ("POST", "/api/held/{id}/accept"): "admin",
    ("GET", "/api/extensions"): "auditor",
    ("POST", "/api/extensions"): "admin",
    ("GET", "/api/extensions/{id}"): "auditor",
    ("DELETE", "/api/extensions/{id}"): "admin",
    ("POST", "/api/extensions/{id}/enable"): "admin",
    ("POST", "/api/extensions/{id}/disable"): "admin",
    ("GET", "/api/skills"): "auditor",
    ("POST", "/api/skills"): "admin",
    ("GET", "/api/skills/{id}"): "auditor",
    ("DELETE", "/api/skills/{id}"): "admin",
    ("POST", "/api/skills/{id}/enable"): "admin",
    ("POST", "/api/skills/{id}/disable"): "admin",
    ("GET", "/api/results/{id}"): "key",
    ("GET", "/api/agents"): "key",
    ("GET", "/api/agents/{name}"): "key",
    ("POST", "/api/agents/{name}/message"): "key",
    ("POST", "/api/agents/{name}/stream"): "key",
    ("GET", "/api/schedules"): "key",
    ("POST", "/api/schedules"): "key",
    ("GET", "/api/schedules/{id}"): "key",
    ("DELETE", "/api/schedules/{id}"): "key",
    ("POST", "/api/schedules/{id}/pause"): "key",
    ("POST", "/api/schedules/{id}/resume"): "key",
    ("POST", "/api/schedules/{id}/run"): "key",
    ("GET", "/api/usage"): "key",
    ("GET", "/api/sessions"): "key",
    ("GET", "/api/sessions/{id}"): "key",
    ("GET", "/api/sessions/{id}/export"): "key",
    ("DELETE", "/api/sessions/{id}"): "key",
    ("GET", "/api/memory"): "key",
    ("GET", "/api/memory/{key}"): "key",
    ("DELETE", "/api/memory/{key}"): "key",
    ("GET", "/api/a2a/agents"): "key",
    ("POST", "/api/a2a/agents/{name}/discover"): "key",
    ("POST", "/api/a2a/discover"): "key",
    ("POST", "/api/a2a/send"): "key",
    ("GET", "/api/a2a/tasks"): "key",
    ("POST", "/api/a2a/tasks"): "key",
    ("GET", "/api/a2a/tasks/{id}"): "key",
    ("POST", "/api/a2a/tasks/{id}/cancel"): "key",
    ("GET", "/api/a2a/tasks/{id}/events"): "key",
    ("GET", "/api/approvals"): "key",
    ("GET", "/api/approvals/{id}"): "key",
    ("POST", "/api/approvals/{id}"): "approver",
    ("POST", "/api/approvals/{id}/answer"): "token",
    ("GET", "/api/specs"): "key",
    ("POST", "/api/specs"): "admin",
    ("GET", "/api/keys"): "admin",
    ("POST", "/api/keys"): "admin",
    ("DELETE", "/api/keys/{name}"): "admin",
    ("GET", "/api/nodes"): "auditor",
    ("POST", "/api/nodes/{name}/drain"): "admin",
    ("POST", "/api/nodes/{name}/resume"): "admin",
    ("DELETE", "/api/nodes/{name}"): "admin",
    ("GET", "/api/secrets"): "admin",
    ("PUT", "/api/secrets/{name}"): "admin",
    ("DELETE", "/api/secrets/{name}"): "admin",
    ("GET", "/api/audit"): "auditor",
    ("GET", "/api/audit/export"): "auditor",
    ("GET", "/api/audit/verify"): "auditor",
    ("POST", "/api/audit/sql"): "auditor",
    ("POST", "/api/audit/prove"): "key",
    ("GET", "/api/config"): "auditor",
    ("POST", "/api/config/reload"): "admin",
    ("GET", "/api/events"): "key",
    ("GET", "/metrics"): "auditor",
    ("GET", "/.well-known/oauth-protected-resource"): "public",
    ("GET", "/.well-known/oauth-protected-resource/api"): "public",
    ("GET", "/.well-known/oauth-protected-resource/mcp"): "public",
    ("GET", "/.well-known/oauth-protected-resource/mcp/{toolset}"): "public",
    ("GET", "/.well-known/oauth-protected-resource/mcp/agents/{name}"): "public",
}
MOUNTED = {
    ("POST", "/mcp"): "key",
    ("POST", "/mcp/{toolset}"): "key",
    ("POST", "/mcp/agents/{name}"): "key",
    ("GET", "/.well-known/agent.json"): "public",
    ("GET", "/.well-known/agent-card.json"): "public",
    ("GET", "/.well-known/jwks.json"): "public",
    ("POST", "/a2a"): "key",
    ("GET", "/a2a/agents"): "key",
    ("POST", "/a2a/agents/{name}"): "key",
    ("GET", "/a2a/agents/{name}/.well-known/agent.json"): "key",
    ("GET", "/a2a/agents/{name}/.well-known/agent-card.json"): "key",
    ("POST", "/a2a/agents/{name}/seed"): "key",
    ("GET", "/a2a/agents/{name}/rest/{path}"): "key",
    ("POST", "/a2a/agents/{name}/rest/{path}"): "key",
    ("POST", "/a2a/tasks/send"): "key",
    ("GET", "/a2a/tasks/{id}"): "key",
    ("GET", "/a2a/tasks/{id}/history"): "key",
    ("POST", "/a2a/tasks/{id}/cancel"): "key",
}
"""What edges of their own serve: by path, for the library behind some of them knows more methods.

The cards of agents that the operator publishes need no key.
"""
BODIES = {
    "/api/agents/{name}/message": {"message": "hello"},
    "/api/approvals/{id}": {"answer": "deny"},
    "/api/schedules": {"agent": "nobody", "schedule": "hourly", "description": "x"},
    "/api/specs": {"name": "plan", "content": "a plan"},
    "/api/keys": {"name": "one-more"},
    "/api/audit/sql": {"query": "SELECT 1"},
    "/api/mcp/servers": {"name": "one", "transport": {"type": "stdio", "command": "../one"}},
}
# What stands for {id} and {name} exists for nobody, so nothing is changed by asking.
NAMES = {"{id}": "nothing", "{name}": "nobody", "{toolset}": "none", "{path}": "tasks"}
ROLES = ("user", "auditor", "approver", "admin")
ENOUGH = {
    "public": {None, *ROLES},
    "key": {*ROLES},
    "auditor": {"auditor", "admin"},
    "approver": {"approver", "admin"},
    "admin": {"admin"},
}


def test_the_table_names_every_route_and_what_it_requires() -> None:
    built = {(one.method, one.path): one.access.value for one in ENDPOINTS}
    assert built == TABLE
    assert len(built) == len(ENDPOINTS)


def test_the_second_table_names_every_path_of_the_other_edges() -> None:
    paths = {path for _, path in MOUNTED}
    assert {path for path in paths if not path.startswith("/mcp")} == {*places.ROUTES, places.REST}
    public = {path for (_, path), access in MOUNTED.items() if access == "public"}
    assert public == places.PUBLIC


async def knock(node: Live, method: str, path: str, key: str | None) -> Reply:
    """Ask for a route; of a stream only the head."""
    address = path
    for word, name in NAMES.items():
        address = address.replace(word, name)
    if path == "/api/events":
        return await node.ask("HEAD", address, key=key)
    body: dict[str, Any] = {} if method == "GET" else {"json": BODIES.get(path, {})}
    return await node.ask(method, address, key=key, **body)


async def test_every_route_is_open_to_exactly_whom_the_table_says(node: Live) -> None:
    keys: dict[str | None, str | None] = {None: None}
    for role in ROLES:
        keys[role] = await node.key(f"a-{role}", role=role)
    for (method, path), access in TABLE.items():
        for role, key in keys.items():
            reply = await knock(node, method, path, key)
            where = (method, path, role)
            if access == "token":  # no key stands in for it
                assert (where, reply.told) == (where, (401, "answer_token"))
            elif role in ENOUGH[access]:
                assert (where, reply.status not in {401, 403}) == (where, True), reply.body
                assert (where, reply.status < 500) == (where, True)
            elif role is None:
                assert (where, reply.status) == (where, 401)
                assert reply.headers["WWW-Authenticate"].startswith("Bearer")
            else:
                rule = "admin_only" if access == "admin" else "role"
                assert (where, reply.told) == (where, (403, rule))
            if reply.status >= 400 and method != "GET":
                assert reply.problem["way_out"]


async def test_every_path_of_the_other_edges_is_open_to_whom_the_table_says(
    tmp_path: Path, demo: Demo
) -> None:
    config = "[a2a]\nenabled = true\n"
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        keys = {role: await node.key(f"a-{role}", role=role) for role in ROLES}
        for (method, path), access in MOUNTED.items():
            for role, key in {None: None, **keys}.items():
                reply = await knock(node, method, path, key)
                where = (method, path, role)
                if role in ENOUGH[access]:
                    assert (where, reply.status not in {401, 403}) == (where, True), reply.body
                    assert (where, reply.status < 500) == (where, True)
                else:
                    assert (where, reply.told) == (where, (401, "unauthenticated"))
                    assert reply.headers["WWW-Authenticate"].startswith("Bearer")


async def test_who_is_turned_away_for_its_role_is_on_record(node: Live) -> None:
    user = await node.key("curious")
    await node.get("/api/keys", key=user)
    found = (await node.get("/api/audit?event=policy_violation&caller=key:curious")).json
    assert [record["payload"]["rule"] for record in found["records"]] == ["admin_only"]


async def test_an_address_that_is_not_there_needs_a_key_too(node: Live) -> None:
    for path in ("/", "/api", "/api/", "/api/nothing", "/api/health/", "/docs", "/api/tools/a/b"):
        assert (await node.get(path, key=None)).told == (401, "unauthenticated")
        assert (await node.get(path)).told == (404, "route")
    for path in ("/api/%68ealth", "/api/./health", "/api//health"):
        assert (await node.get(path)).status == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/health", "GET, HEAD"),
        ("PUT", "/api/keys", "GET, HEAD, POST"),
        ("GET", "/api/keys/somebody", "DELETE"),
        ("GET", "/api/tools/system_time/call", "POST"),
        ("OPTIONS", "/api/tools", "GET, HEAD"),
        ("PATCH", "/api/config/reload", "POST"),
        ("TRACE", "/metrics", "GET, HEAD"),
    ],
)
async def test_another_method_is_told_which_ones_there_are(
    node: Live, method: str, path: str, allowed: str
) -> None:
    reply = await node.ask(method, path)
    assert (reply.told, reply.headers["Allow"]) == ((405, "method"), allowed)


async def test_what_is_public_tells_no_details(node: Live) -> None:
    assert (await node.get("/api/health", key=None)).json == {"status": "ok"}
    assert (await node.get("/api/ready", key=None)).json == {"status": "ready"}
    node.stop.set()
    # The sockets are closed by now, so a connection that is open already would be asked: none is.
    await node.ended.wait()


async def test_only_insiders_see_details_of_the_node(node: Live) -> None:
    plain = {"status", "version", "caller", "role", "tools"}
    details = {
        "node",
        "pid",
        "home",
        "started_at",
        "listeners",
        "approvals",
        "held",
        "rules",
        "audit",
        "config",
    }
    for role in ROLES:
        secret = await node.key(f"a-{role}", role=role)
        body = (await node.get("/api/status", key=secret)).json
        insider = role in {"auditor", "admin"}
        assert set(body) == (plain | details if insider else plain)
        assert (body["caller"], body["role"]) == (f"key:a-{role}", role)


async def test_answers_are_stored_nowhere_and_taken_for_nothing_else(node: Live) -> None:
    for reply in (await node.get("/api/health"), await node.get("/api/nothing")):
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"


async def test_head_is_get_without_the_body(node: Live) -> None:
    for path in ("/api/health", "/api/tools", "/metrics", "/api/audit/export"):
        whole, head = await node.get(path), await node.ask("HEAD", path)
        assert (head.status, head.body) == (whole.status, b"")
        assert head.headers["Content-Type"] == whole.headers["Content-Type"]
    assert (await node.ask("HEAD", "/api/events")).headers["Content-Type"] == "text/event-stream"
