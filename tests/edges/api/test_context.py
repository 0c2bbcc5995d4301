"""What a call may choose of what is bound to its key, and what it may not say of itself (C7.7)."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C7.7")


async def contexts(node: Live) -> list[tuple[str, str | None]]:
    """Mode and project of every call that ran, as the log has them."""
    started = [e for e in await node.events() if e.event_type == "tool_invocation_start"]
    return [(event.context["mode"], event.context["project"]) for event in started]


async def test_without_a_context_what_is_bound_counts(node: Live) -> None:
    user = await node.key("bound", projects=["red", "blue"], mode="planning")
    assert (await node.call("mcp:demo:echo", key=user)).status == 200
    assert (await node.call("mcp:demo:echo")).status == 200
    assert await contexts(node) == [("planning", "red"), ("execution", "default")]


async def test_a_call_chooses_among_what_is_bound(node: Live) -> None:
    user = await node.key("bound", projects=["red", "blue"])
    context = {"project_id": "blue", "mode": "planning", "task_id": "task-7"}
    assert (await node.call("mcp:demo:echo", context=context, key=user)).status == 200
    assert await contexts(node) == [("planning", "blue")]
    assert {event.task_id for event in await node.events()} == {"task-7"}


async def test_a_call_may_tighten_for_itself(node: Live) -> None:
    for context in ({"mode": "planning"}, {"blacklist": ["fs.write"]}):
        assert (await node.call("mcp:demo:write", context=context)).status == 403
    assert (await node.call("mcp:demo:write")).status == 200


@pytest.mark.parametrize(
    ("context", "rule"),
    [
        ({"project_id": "green"}, "context.project"),
        ({"mode": "execution"}, "context.mode"),
    ],
)
async def test_a_call_may_not_choose_more_than_is_bound(
    node: Live, demo: Demo, context: dict[str, str], rule: str
) -> None:
    user = await node.key("bound", projects=["red"], mode="planning")
    reply = await node.call("mcp:demo:echo", context=context, key=user)
    assert reply.told == (403, rule)
    assert "openfang keys create" in reply.problem["way_out"]
    assert demo.source.reached == 0


async def test_a_frozen_spec_is_looked_up_by_its_hash(node: Live, demo: Demo) -> None:
    made = await node.post("/api/specs", {"name": "plan", "content": "deploy it"})
    assert made.status == 201
    for spec, status in ((made.json["hash"], 200), ("0" * 64, 403), ("whatever", 403)):
        reply = await node.call("mcp:demo:deploy", {"text": spec}, context={"spec_hash": spec})
        assert (spec, reply.status) == (spec, status)
    assert demo.source.reached == 1


NOT_ITS_TO_SAY: list[Any] = [
    {"context": {"spec_frozen": True}},
    {"context": {"admin_token": "oft_x"}},
    {"context": {"caller": "key:admin"}},
    {"context": {"role": "admin"}},
    {"context": {"depth": 1}},
    {"context": {"mode": "whatever"}},
    {"context": {"blacklist": ["no.such_tag"]}},
    {"context": None},
    {"arguments": []},
    {"arguments": None},
    {"admin_token": "oft_x"},
    {"api_key": "of_x"},
    {"caller": "key:admin"},
    [],
    "text",
    None,
]


async def test_what_a_caller_may_not_say_of_itself_is_refused(node: Live, demo: Demo) -> None:
    path, kind = "/api/tools/mcp:demo:deploy/call", {"Content-Type": "application/json"}
    for body in NOT_ITS_TO_SAY:
        reply = await node.ask("POST", path, data=json.dumps(body), headers=kind)
        assert (body, reply.told) == (body, (422, "body"))
    assert demo.source.reached == 0


async def test_an_admin_token_opens_gate_6_and_nothing_else_does(node: Live, demo: Demo) -> None:
    token = await node.key("second", kind="admin_token", tools=["mcp:demo:*"])
    narrow = await node.key("narrow", kind="admin_token", tools=["builtin:*"])
    call, locked = "mcp:demo:locked", (403, "admin_token_missing")
    assert (await node.call(call)).told == locked
    for wrong in (narrow, node.admin, "oft_made-up", ""):
        assert (await node.call(call, headers={"X-Admin-Token": wrong})).told == locked
    assert (await node.call(call, {"admin_token": token})).told == locked
    assert demo.source.reached == 0
    assert (await node.call(call, headers={"X-Admin-Token": token})).status == 200
    assert (await node.get("/api/keys", key=token)).told == (401, "unauthenticated")
    await node.ask("DELETE", "/api/keys/second")
    assert (await node.call(call, headers={"X-Admin-Token": token})).told == locked


def everything_kept(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


@pytest.mark.requirement("C18.1", "C18.3")
async def test_no_credential_is_kept_anywhere(node: Live, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    user = await node.key("someone")
    token = await node.key("second", kind="admin_token")
    for headers in ({}, {"X-Admin-Token": token}, {"X-Admin-Token": "oft_wrong-but-secret"}):
        await node.call("mcp:demo:locked", key=user, headers=headers)
    await node.get("/api/keys", key=user)
    await node.get("/api/version", key="of_unknown-but-secret")
    kept = await to_thread.run_sync(everything_kept, node.app.parts.home.path)
    for secret in (user, token, "oft_wrong-but-secret", "of_unknown-but-secret"):
        assert secret.encode() not in kept
        assert secret not in caplog.text
    listed = await node.get("/api/keys")
    assert user.encode() not in listed.body
    assert [key["name"] for key in listed.json["keys"]] == ["admin", "someone", "second"]
