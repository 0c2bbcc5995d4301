"""`POST /api/tools/{id}/call`: every ending a call can have, as it comes over the wire (C12.5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import pytest
from anyio import to_thread

from openfang.core.bodies import failure_body, problem_body, result_body
from openfang.core.errors import CallFailed, CallRefused

if TYPE_CHECKING:
    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C12.5")


def without_ids(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in {"call_id", "audit"}}


async def in_process(node: Live, tool: str, **arguments: Any) -> dict[str, Any]:
    """What the command line prints for the same call with `--json`, but for its ids."""
    try:
        return without_ids(result_body(await node.app.call(tool, **arguments)))
    except CallFailed as failure:
        return without_ids(failure_body(failure))
    except CallRefused as refusal:
        return problem_body(refusal)


async def test_a_call_answers_with_its_content_and_its_receipt(node: Live) -> None:
    reply = await node.call("mcp:demo:echo", {"text": "hello"})
    assert reply.status == 200
    assert reply.json == {
        "call_id": reply.json["call_id"],
        "outcome": "ok",
        "content": [{"type": "text", "text": "hello"}],
        "structured": None,
        "labels": [],
        "audit": reply.json["audit"],
    }
    written = {event.audit_id: event for event in await node.events()}
    start, end = (written[reply.json["audit"][name]] for name in ("start", "end"))
    assert (start.event_type, end.event_type) == ("tool_invocation_start", "tool_invocation_end")
    assert reply.json["audit"]["hash"] == end.hash
    assert start.call_id == end.call_id == reply.json["call_id"]
    assert start.context["edge"] == "api"


@pytest.mark.parametrize(
    ("tool", "arguments", "status"),
    [
        ("mcp:demo:echo", {"text": "same"}, 200),
        ("mcp:demo:rain", {}, 200),
        ("mcp:demo:broken", {}, 200),
        ("mcp:demo:off", {}, 403),
        ("mcp:demo:locked", {}, 403),
        ("mcp:demo:strict", {"number": "one"}, 422),
        ("mcp:demo:nothing", {}, 404),
    ],
)
async def test_it_is_the_object_that_the_command_line_prints(
    node: Live, tool: str, arguments: dict[str, Any], status: int
) -> None:
    reply = await node.call(tool, arguments)
    assert reply.status == status
    assert without_ids(reply.json) == await in_process(node, tool, **arguments)


async def test_what_the_tool_itself_calls_an_error_is_an_outcome(node: Live) -> None:
    reply = await node.call("mcp:demo:rain")
    assert (reply.status, reply.json["outcome"]) == (200, "error")
    assert reply.json["content"] == [{"type": "text", "text": "it is raining"}]
    assert "OpenFang-Failure" not in reply.headers


async def test_a_tool_that_breaks_is_an_outcome_too_and_says_how(node: Live) -> None:
    reply = await node.call("mcp:demo:broken")
    assert (reply.status, reply.json["outcome"]) == (200, "error")
    assert reply.headers["OpenFang-Failure"] == reply.json["structured"]["code"] == "source_failed"
    assert reply.json["audit"]["end"] > reply.json["audit"]["start"]
    assert b"somebody-else" not in reply.body


async def test_a_tool_that_takes_too_long_is_an_outcome_too(node: Live, demo: Demo) -> None:
    node.app.parts.pipeline.tool_seconds = 0.05
    reply = await node.call("mcp:demo:wait")
    assert (reply.status, reply.headers["OpenFang-Failure"]) == (200, "timeout")
    assert demo.cancelled.is_set()


GATES: list[tuple[str, dict[str, Any], str, str]] = [
    ("mcp:demo:off", {}, "tool_disabled", "disabled"),
    ("mcp:demo:write", {"mode": "planning"}, "planning_mode", "mode"),
    ("mcp:demo:write", {"blacklist": ["fs.write"]}, "side_effect_blacklisted", "policy"),
    ("mcp:demo:locked", {}, "admin_token_missing", "admin_token"),
]


async def test_a_gate_that_says_no_is_a_problem_with_every_gates_word(
    node: Live, demo: Demo
) -> None:
    for tool, context, rule, gate in GATES:
        reply = await node.call(tool, context=context)
        assert reply.told == (403, rule)
        verdicts = {one["gate"]: one["verdict"] for one in reply.problem["gates"]}
        assert [name for name, verdict in verdicts.items() if verdict == "deny"] == [gate]
        assert reply.problem["way_out"]
        assert reply.problem["detail"].startswith("Policy violation: ")
    assert demo.source.reached == 0


async def test_arguments_that_do_not_fit_are_422(node: Live, demo: Demo) -> None:
    for arguments in ({}, {"number": "1"}, {"number": 1, "more": 2}):
        assert (await node.call("mcp:demo:strict", arguments)).told == (422, "schema_mismatch")
    assert demo.source.reached == 0
    assert (await node.call("mcp:demo:strict", {"number": 1})).status == 200


async def test_a_guard_that_trips_is_429(node: Live) -> None:
    context = {"run": "in-circles"}
    replies = [await node.call("mcp:demo:echo", context=context) for _ in range(5)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429, 429]
    assert replies[-1].problem["rule"] == "identical_outcome"


async def test_unknown_and_hidden_are_the_same_bytes_but_the_name(node: Live) -> None:
    narrow = await node.key("narrow", tools=["builtin:*"])
    paths = ("/api/tools/{}/call", "/api/tools/{}/explain", "/api/tools/{}")

    async def seen(path: str, name: str) -> tuple[int, bytes, set[str]]:
        ask = node.get if path.endswith("{}") else node.post
        reply = await ask(path.format(name), key=narrow)
        return reply.status, reply.body.replace(name.encode(), b"NAME"), set(reply.headers)

    for path in paths:
        hidden, unknown = await seen(path, "mcp:demo:echo"), await seen(path, "mcp:demo:ecno")
        assert hidden == unknown
        assert hidden[0] == 404
    found = await node.get("/api/audit?event=policy_violation&caller=key:narrow")
    told = [record["payload"].get("hidden") for record in found.json["records"]]
    assert told == ["true", None]


@pytest.mark.requirement("C1.5")
@pytest.mark.parametrize(
    "name",
    [
        "mcp_demo_echo",
        "mcp:demo:echo",
        "mcp%3Ademo%3Aecho",
        "%6d%63p_demo_echo",
        quote("mcp:demo:odd/call", safe=""),
        quote("mcp:demo:ümlaut %2F?#", safe=""),
    ],
)
async def test_a_tool_is_named_by_any_of_its_names_percent_encoded(node: Live, name: str) -> None:
    called = await node.call(name, {"text": "it"})
    assert (called.status, called.json["content"][0]["text"]) == (200, "it")
    shown = await node.get(f"/api/tools/{name}")
    assert shown.status == 200
    explained = await node.post(f"/api/tools/{name}/explain")
    assert (explained.json["outcome"], explained.json["tool"]) == ("allow", shown.json["id"])


async def test_a_slash_that_is_not_encoded_is_part_of_the_address(node: Live) -> None:
    assert (await node.call("mcp:demo:odd/call")).told == (404, "route")


async def approve(node: Live, question: str, answer: str = "approve", **more: Any) -> Reply:
    return await node.post(f"/api/approvals/{question}", {"answer": answer, **more})


@pytest.mark.requirement("C15.1", "C15.3")
async def test_a_parked_call_runs_once_after_it_was_approved(node: Live, demo: Demo) -> None:
    user = await node.key("agent", role="user")
    call = partial(node.call, "mcp:demo:deploy", {"text": "now"}, key=user)
    parked = await call()
    assert parked.status == 202
    question = parked.problem["approval"]
    assert parked.problem["way_out"].startswith(f"openfang approvals approve {question}")
    assert (await call()).problem["approval"] == question
    assert demo.source.reached == 0
    answered = await approve(node, question)
    assert (answered.status, answered.json["state"]) == (200, "approved")
    ran = await call()
    assert (ran.status, ran.json["content"][0]["text"]) == (200, "now")
    again = await call()
    assert (again.status, again.problem["approval"] != question) == (202, True)
    assert demo.source.reached == 1


@pytest.mark.requirement("C15.3")
async def test_an_approval_is_for_exactly_that_call(node: Live, demo: Demo) -> None:
    user = await node.key("agent")
    question = (await node.call("mcp:demo:deploy", {"text": "a"}, key=user)).problem["approval"]
    await approve(node, question)
    assert (await node.call("mcp:demo:deploy", {"text": "b"}, key=user)).status == 202
    assert (await node.call("mcp:demo:deploy", {"text": "a"})).status == 202
    assert demo.source.reached == 0


@pytest.mark.requirement("C15.1")
async def test_a_denied_call_stays_denied(node: Live, demo: Demo) -> None:
    question = (await node.call("mcp:demo:deploy")).problem["approval"]
    assert (await approve(node, question, "deny")).json["state"] == "denied"
    assert (await approve(node, question)).told == (409, "conflict")
    assert (await node.call("mcp:demo:deploy")).told == (403, "approval_denied")
    assert demo.source.reached == 0


@pytest.mark.requirement("C15.3")
async def test_who_prefers_to_wait_gets_the_answer_of_the_person(node: Live) -> None:
    replies: list[Reply] = []

    async def ask() -> None:
        wait = {"Prefer": "respond-async, wait=30"}
        replies.append(await node.call("mcp:demo:deploy", headers=wait))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        question = await first_question(node)
        await approve(node, question)
    assert (replies[0].status, replies[0].json["outcome"]) == (200, "ok")


async def first_question(node: Live) -> str:
    with anyio.fail_after(30):
        while not (found := (await node.get("/api/approvals")).json["approvals"]):
            await anyio.lowlevel.checkpoint()
    return found[0]["id"]


@pytest.mark.requirement("C15.3")
async def test_who_waits_in_vain_is_sent_away_with_the_question(node: Live) -> None:
    reply = await node.call("mcp:demo:deploy", headers={"Prefer": "wait=0"})
    assert (reply.status, bool(reply.problem["approval"])) == (202, True)
    for odd in ("wait=", "wait=x", "wait=-1", "wait=9999999"):
        assert (await node.call("mcp:demo:deploy", headers={"Prefer": odd})).status == 202


@pytest.mark.requirement("C18.1", "C15.1")
async def test_questions_are_seen_by_who_asked_and_by_who_watches(node: Live) -> None:
    asking, other = await node.key("asking"), await node.key("other")
    watching = await node.key("watching", role="approver")
    question = (await node.call("mcp:demo:deploy", key=asking)).problem["approval"]
    for key, count in ((asking, 1), (other, 0), (watching, 1)):
        assert (await node.get("/api/approvals", key=key)).json["total"] == count
        status = (await node.get(f"/api/approvals/{question}", key=key)).status
        assert status == (200 if count else 404)
    refused = await node.post(f"/api/approvals/{question}", {"answer": "approve"}, key=asking)
    assert refused.told == (403, "role")
    answered = await node.post(f"/api/approvals/{question}", {"answer": "approve"}, key=watching)
    assert answered.json["answered_by"] == "key:watching"
    assert (await node.get("/api/approvals", key=asking)).json["total"] == 0
    assert (await node.get("/api/approvals?all=true", key=asking)).json["total"] == 1
    assert (await node.get("/api/approvals?all=true", key=other)).json["total"] == 0


@pytest.mark.requirement("C7.10")
async def test_what_cannot_be_recorded_is_not_done(node: Live, demo: Demo) -> None:
    await node.call("mcp:demo:echo")
    await to_thread.run_sync(node.app.file.path.unlink)
    reply = await node.call("mcp:demo:echo")
    assert reply.told == (503, "audit_unavailable")
    assert reply.problem["detail"].startswith("audit unavailable")
    assert int(reply.headers["Retry-After"]) > 0
    assert demo.source.reached == 1


@pytest.mark.requirement("C7.12", "C18.1")
async def test_a_cut_result_is_kept_whole_for_who_made_the_call(node: Live) -> None:
    user, other = await node.key("reader"), await node.key("other")
    reply = await node.call("mcp:demo:large", {"size": 60_000}, key=user)
    text = reply.json["content"][-1]["text"]
    uri = text.rpartition(", ")[2].removesuffix("]")
    assert uri.startswith("openfang://results/")
    for name in (uri.rpartition("/")[2], quote(uri, safe="")):
        whole = await node.get(f"/api/results/{name}", key=user)
        assert whole.json["content"][0]["text"] == "x" * 60_000
        assert (await node.get(f"/api/results/{name}", key=other)).told == (404, "not_found")


@pytest.mark.requirement("C7.14")
async def test_explain_decides_and_does_nothing(node: Live, demo: Demo) -> None:
    body = (await node.post("/api/tools/mcp:demo:deploy/explain", {"arguments": {}})).json
    assert (body["tool"], body["outcome"]) == ("mcp:demo:deploy", "ask")
    assert {"gate": "disabled", "verdict": "allow"} in body["gates"]
    assert (await node.get("/api/approvals?all=true")).json["total"] == 0
    assert demo.source.reached == 0


@pytest.mark.requirement("C7.3", "C14.1")
async def test_the_list_shows_what_the_key_can_see_and_can_be_narrowed(node: Live) -> None:
    narrow = await node.key("narrow", tools=["mcp:demo:*"])
    everything = (await node.get("/api/tools", key=narrow)).json
    assert {tool["source"] for tool in everything["tools"]} == {"demo"}
    assert everything["total"] == len(everything["tools"]) == 11
    for query, names in {
        "risk=HIGH": ["mcp:demo:deploy"],
        "risk=MED": ["mcp:demo:write"],
        "tag=fs.write": ["mcp:demo:write"],
        "source=builtin": [],
        "risk=LOW&source=mcp&tag=fs.write": [],
    }.items():
        found = (await node.get(f"/api/tools?{query}", key=narrow)).json["tools"]
        assert (query, [tool["id"] for tool in found]) == (query, names)
    shown = (await node.get("/api/tools?all=true", key=narrow)).json["tools"]
    assert [tool["id"] for tool in shown if not tool["enabled"]] == ["mcp:demo:off"]
