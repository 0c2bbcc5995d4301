"""A call that a person must allow, over each edge: who is asked, and what their answer does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from tests.edges.live import live
from tests.edges.mcp.talking import CAPABILITIES, META, greet, modern, request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C7.9", "C15.2", "C15.3")
TOOL, WIRE = "mcp:demo:deploy", "mcp_demo_deploy"
FORMS: dict[str, Any] = {"elicitation": {}}
MODERN: dict[str, Any] = {**META, CAPABILITIES: {"elicitation": {"form": {}}}}
YES: dict[str, Any] = {"action": "accept", "content": {"answer": "approve"}}
NO: dict[str, Any] = {"action": "accept", "content": {"answer": "deny"}}
HELPER = """
name = "helper"
description = "Deploys."
[capabilities]
tools = ["mcp:demo:deploy"]
[policy]
project = "default"
"""
A2A = "[a2a]\nenabled = true\n"
_NUMBERS = count(1)


def called(**arguments: Any) -> dict[str, Any]:
    return {"name": WIRE, "arguments": arguments}


async def asked(node: Live, count: int = 1) -> list[Any]:
    """Wait until so many questions are open."""
    while len(found := (await node.get("/api/approvals")).json["approvals"]) < count:
        pass
    return found


async def answers(node: Live) -> list[tuple[str, str, str]]:
    """What the log says of answers: what, who, by which way."""
    found = (await node.get("/api/audit?event=approval_answered")).json["records"]
    payloads = [one["payload"] for one in found]
    return [(one["state"], one["answered_by"], one["via"]) for one in payloads]


@pytest.mark.parametrize(("answer", "state"), [(YES, "approved"), (NO, "denied")])
async def test_in_a_session_the_person_at_the_client_decides(
    node: Live, demo: Demo, answer: Any, state: str
) -> None:
    session = await greet(node, capabilities=FORMS, key=await node.key("ide", projects=["default"]))
    async with session.asking("tools/call", called(text="prod")) as stream:
        put = await stream.message()
        (question,) = await asked(node)
        assert put["method"] == "elicitation/create"
        assert put["params"]["_meta"] == {"openfang/approval": question["id"]}
        for word in (TOOL, "key:ide", question["reason"], '{"text":"prod"}'):
            assert word in put["params"]["message"]
        assert list(put["params"]["requestedSchema"]["properties"]) == ["answer"]
        await session.answer(put["id"], answer)
        result = (await stream.message())["result"]
    ran = state == "approved"
    assert (result.get("isError", False), demo.source.reached) == (not ran, int(ran))
    assert await answers(node) == [(state, "client:ide", "client")]


async def test_who_is_asked_and_does_not_say_leaves_it_to_the_others(
    node: Live, demo: Demo
) -> None:
    session = await greet(node, capabilities=FORMS)
    async with session.asking("tools/call", called(text="prod")) as stream:
        put = await stream.message()
        await session.answer(put["id"], {"action": "cancel"})
        result = (await stream.message())["result"]
    (question,) = await asked(node)
    assert question["id"] in str(result)
    assert await answers(node) == []
    async with session.asking("tools/call", called(text="prod")) as stream:
        put = await stream.message()
        assert put["params"]["_meta"] == {"openfang/approval": question["id"]}
        await node.post(f"/api/approvals/{question['id']}", {"answer": "approve"})
        taken_back, answered = await stream.rest()
    assert taken_back["method"] == "notifications/cancelled"
    assert answered["result"]["content"][0]["text"] == "prod"
    assert demo.source.reached == 1


async def test_in_the_modern_era_the_question_is_a_result_and_the_answer_a_retry(
    node: Live, demo: Demo
) -> None:
    first = (await _sent(node)).json["result"]
    (question,) = await asked(node)
    assert first["resultType"] == "input_required"
    assert first["inputRequests"].keys() == {question["id"]}
    again = {"requestState": first["requestState"], "inputResponses": {question["id"]: YES}}
    last = (await _sent(node, **again)).json["result"]
    assert last["content"][0]["text"] == "prod"
    assert demo.source.reached == 1
    replayed = (await _sent(node, **again)).json
    assert replayed["error"]["code"] == -32602
    assert demo.source.reached == 1
    assert await answers(node) == [("approved", "client:admin", "client")]


async def _sent(node: Live, **more: Any) -> Reply:
    return await modern(node, "tools/call", {**called(text="prod"), "_meta": MODERN, **more})


async def test_where_the_operator_says_so_no_client_is_asked(tmp_path: Path, demo: Demo) -> None:
    config = "[approvals]\nask_clients = false\n"
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        session = await greet(node, capabilities=FORMS)
        reply = await session.post(request("tools/call", called(text="prod")))
        assert reply.json["result"]["isError"]
        assert len(await asked(node)) == 1


@pytest.mark.requirement("C15.1")
async def test_where_four_eyes_are_wanted_who_asked_may_not_answer(
    tmp_path: Path, demo: Demo
) -> None:
    config = '[approvals]\nfour_eyes = ["mcp:demo:*"]\n'
    async with live(tmp_path / "home", config=config, sources=[demo.source]) as node:
        session = await greet(node, capabilities=FORMS)
        reply = await session.post(request("tools/call", called(text="prod")))
        assert reply.json["result"]["isError"]
        (question,) = await asked(node)
        path = f"/api/approvals/{question['id']}"
        assert (await node.post(path, {"answer": "approve"})).told == (403, "four_eyes")
        second = await node.key("second", role="approver")
        assert (await node.post(path, {"answer": "approve"}, key=second)).status == 200
        assert (await node.call(TOOL, {"text": "prod"})).status == 200
        assert (await node.call(TOOL, {"text": "prod"})).status == 202
        assert demo.source.reached == 1
        assert await answers(node) == [("approved", "key:second", "api")]


@asynccontextmanager
async def helped(folder: Path, demo: Demo, config: str = A2A) -> AsyncGenerator[Live]:
    """Serve an agent that deploys when it is told to, to peers."""
    home = folder / "home"
    await to_thread.run_sync(_write, home)
    async with live(home, config=config, sources=[demo.source]) as node:
        yield node


def _write(home: Path) -> None:
    place = home / "agents" / "helper"
    place.mkdir(parents=True)
    (place / "agent.toml").write_text(HELPER)


async def rpc(node: Live, method: str, params: Any, key: str = "") -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"A2A-Version": "1.0"}
    return (await node.post("/a2a/agents/helper", body, headers=headers, key=key)).json


async def send(node: Live, *parts: Any, key: str = "", **more: Any) -> Any:
    message = {"messageId": f"m{next(_NUMBERS)}", "role": "ROLE_USER", "parts": parts, **more}
    return await rpc(node, "SendMessage", {"message": message}, key)


async def ended(node: Live, task: str, key: str = "") -> Any:
    """Wait until a task has ended."""
    while True:
        found = (await rpc(node, "GetTask", {"id": task}, key))["result"]
        if found["status"]["state"] in {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"}:
            return found


async def test_a_task_shows_the_question_and_goes_on_when_anybody_has_answered(
    tmp_path: Path, demo: Demo
) -> None:
    async with helped(tmp_path, demo) as node:
        peer = await node.key("peer", projects=["default"])
        task = (await send(node, {"text": "deploy"}, key=peer))["result"]["task"]
        (question,) = await asked(node)
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert question["id"] in task["status"]["message"]["parts"][0]["text"]
        assert (question["caller"], question["root"]) == ("agent:helper", "key:peer")
        yes = {"data": {"answer": "approve", "question": question["id"]}}
        refused = await send(node, yes, key=peer, taskId=task["id"])
        assert "approver" in refused["error"]["message"]
        assert demo.source.reached == 0
        await node.post(f"/api/approvals/{question['id']}", {"answer": "approve"})
        assert (await ended(node, task["id"], peer))["status"]["state"] == "TASK_STATE_COMPLETED"
        assert demo.source.reached == 1


async def test_a_peer_that_may_answer_does_so_by_name_and_never_in_passing(
    tmp_path: Path, demo: Demo
) -> None:
    async with helped(tmp_path, demo) as node:
        peer = await node.key("peer", role="approver", projects=["default"])
        task = (await send(node, {"text": "deploy"}, key=peer))["result"]["task"]
        (question,) = await asked(node)
        other = {"data": {"answer": "approve", "question": "ask_another"}}
        for part in ({"text": "approve"}, {"text": "yes"}, {"data": {"answer": "approve"}}, other):
            assert "error" in await send(node, part, key=peer, taskId=task["id"])
        assert await answers(node) == []
        yes = {"data": {"answer": "approve", "question": question["id"]}}
        assert "result" in await send(node, yes, key=peer, taskId=task["id"])
        assert (await ended(node, task["id"], peer))["status"]["state"] == "TASK_STATE_COMPLETED"
        assert await answers(node) == [("approved", "key:peer", "a2a")]
        assert demo.source.reached == 1


@pytest.mark.requirement("C7.11")
async def test_the_time_of_a_person_is_neither_the_chains_nor_the_agents(
    tmp_path: Path, demo: Demo
) -> None:
    async with helped(tmp_path, demo, f"{A2A}[guard]\ndeadline_secs = 0.5\n") as node:
        task = (await send(node, {"text": "deploy"}))["result"]["task"]
        (question,) = await asked(node)
        clock = node.app.parts.clock
        over = clock.monotonic() + 1.0
        while clock.monotonic() < over:
            await asked(node)
        await node.post(f"/api/approvals/{question['id']}", {"answer": "approve"})
        assert (await ended(node, task["id"]))["status"]["state"] == "TASK_STATE_COMPLETED"
        assert demo.source.reached == 1


async def test_four_eyes_hold_for_who_began_the_chain(tmp_path: Path, demo: Demo) -> None:
    config = f'{A2A}[approvals]\nfour_eyes = ["*"]\n'
    async with helped(tmp_path, demo, config) as node:
        peer = await node.key("peer", role="approver", projects=["default"])
        task = (await send(node, {"text": "deploy"}, key=peer))["result"]["task"]
        (question,) = await asked(node)
        yes = {"data": {"answer": "approve", "question": question["id"]}}
        assert (
            "four eyes" in (await send(node, yes, key=peer, taskId=task["id"]))["error"]["message"]
        )
        own = await node.post(f"/api/approvals/{question['id']}", {"answer": "approve"}, key=peer)
        assert own.told == (403, "four_eyes")
        assert (
            await node.post(f"/api/approvals/{question['id']}", {"answer": "deny"})
        ).status == 200
        await ended(node, task["id"], peer)
        assert demo.source.reached == 0


async def test_a_question_can_be_found_and_says_all_that_a_person_wants_to_know(
    node: Live,
) -> None:
    for number in range(5):
        assert (await node.call(TOOL, {"text": str(number)})).status == 202
    other = await node.key("other", projects=["default"])
    assert (await node.call(TOOL, {"text": "x"}, key=other)).status == 202
    page = (await node.get(f"/api/approvals?limit=4&caller=key:admin&tool={TOOL}")).json
    rest = (await node.get(f"/api/approvals?after={page['next']}&caller=key:admin")).json
    texts = [one["arguments"]["text"] for one in (*page["approvals"], *rest["approvals"])]
    assert (texts, page["total"], rest["next"]) == (["4", "3", "2", "1", "0"], 5, None)
    assert (await node.get("/api/approvals?caller=key:admin", key=other)).json["total"] == 0
    assert (await node.get("/api/approvals?state=denied")).json["approvals"] == []
    about = page["approvals"][0]["about"]
    (ask,) = (one for one in about["verdicts"] if one["verdict"] == "ask")
    assert ask["code"] == "spec_not_frozen"
    assert (about["risk"], about["edge"], about["chain"]["depth"]) == ("HIGH", "api", 1)
    assert about["labels"] == ["user_input"]
