"""What a person does on the pages takes the same way as everywhere else."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.live import live
from tests.edges.web.browsing import Browser, signed_in, text_of

from openfang.edges.web.pages import PAGES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C19.2")


async def hash_of(browser: Browser, question: str) -> str:
    body = (await browser.get(f"/approvals/{question}")).body.decode()
    [found] = re.findall(r'name="hash" value="([0-9a-f]{64})"', body)
    return found


async def answered(browser: Browser, question: str, answer: str) -> Any:
    form = {"answer": answer, "hash": await hash_of(browser, question)}
    return await browser.send(f"/approvals/{question}", form)


@pytest.mark.requirement("C15.1", "C15.2")
async def test_a_call_that_waits_goes_on_when_a_person_allows_it(node: Live) -> None:
    async def call() -> Any:
        return await node.call("mcp:demo:deploy", {"text": "now"}, headers={"Prefer": "wait=30"})

    waiting = asyncio.ensure_future(call())
    browser = await signed_in(node)
    question = ""
    with anyio.fail_after(20):
        while not question:
            found = (await node.get("/api/approvals")).json["approvals"]
            question = found[0]["id"] if found else ""
    page = text_of(await browser.get("/approvals"))
    assert "May key:admin call mcp:demo:deploy once, with exactly these arguments?" in page
    reply = await answered(browser, question, "allow")
    assert (reply.status, reply.headers["Location"]) == (303, f"/approvals/{question}")
    with anyio.fail_after(20):
        ended = await waiting
    assert (ended.status, ended.json["content"][0]["text"]) == (200, "now")
    assert "Allowed" in text_of(await browser.get(f"/approvals/{question}"))
    [told] = [one for one in await node.events() if one.event_type == "approval_answered"]
    assert (told.payload["via"], told.payload["answered_by"]) == ("web", "key:admin")
    page = text_of(await browser.get(f"/calls/{ended.json['call_id']}"))
    assert "a person was asked and allowed it" in page
    assert "Allowed by key:admin" in page
    assert "Waited for a person" in page


async def test_a_denied_question_stays_denied_and_no_second_answer_counts(node: Live) -> None:
    question = (await node.call("mcp:demo:deploy", {})).json["approval"]
    browser = await signed_in(node)
    held = await hash_of(browser, question)
    assert (await answered(browser, question, "deny")).status == 303
    again = await browser.send(f"/approvals/{question}", {"answer": "allow", "hash": held})
    assert again.status in {200, 409}
    assert (await node.get(f"/api/approvals/{question}")).json["state"] == "denied"


async def test_an_answer_holds_for_the_arguments_that_were_shown(node: Live) -> None:
    question = (await node.call("mcp:demo:deploy", {})).json["approval"]
    browser = await signed_in(node)
    await browser.get(f"/approvals/{question}")
    reply = await browser.send(f"/approvals/{question}", {"answer": "allow", "hash": "0" * 64})
    assert reply.status == 409
    assert (await node.get(f"/api/approvals/{question}")).json["state"] == "pending"


@pytest.mark.requirement("C15.1")
async def test_a_user_cannot_answer_and_an_approver_not_their_own(node: Live) -> None:
    user, approver = await node.key("u"), await node.key("p", role="approver")
    question = (await node.call("mcp:demo:deploy", {}, key=user)).json["approval"]
    own = (await node.call("mcp:demo:deploy", {}, key=approver)).json["approval"]
    asking, answering = await signed_in(node, user), await signed_in(node, approver)
    page = text_of(await asking.get(f"/approvals/{question}"))
    assert "An approver answers this" in page
    assert "Allow this one call" not in page
    await answered(asking, question, "allow")
    assert "somebody else must allow it" in text_of(await answering.get(f"/approvals/{own}"))
    await answered(answering, own, "allow")
    states = [(await node.get(f"/api/approvals/{one}")).json["state"] for one in (question, own)]
    assert states == ["pending", "pending"]
    assert (await asking.get(f"/approvals/{own}")).status == 404
    await answered(answering, question, "allow")
    assert (await node.get(f"/api/approvals/{question}")).json["state"] == "approved"


async def test_a_page_that_fails_is_a_page_that_names_its_request(
    node: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: object) -> Any:
        raise RuntimeError("sk-live-of-somebody")

    monkeypatch.setitem(PAGES, "/settings", broken)
    browser = await signed_in(node)
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    parent = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    reply = await browser.get("/settings", headers=parent)
    assert (reply.status, reply.headers["Content-Type"]) == (500, "text/html; charset=utf-8")
    assert trace in text_of(reply)
    assert b"sk-live" not in reply.body
    assert "GET /settings: the page failed" in caplog.text
    assert (await browser.get("/policy")).status == 200


async def test_a_tool_is_explained_first_and_then_called(node: Live, demo: Demo) -> None:
    browser = await signed_in(node)
    page = text_of(await browser.get("/tools/mcp:demo:strict"))
    assert "Call it once" not in page
    before = demo.source.reached
    explained = text_of(
        await browser.send("/tools/mcp:demo:strict", {"arg.number": "7", "act": "explain"})
    )
    assert "Would be allowed" in explained
    assert "Call it once" in explained
    assert demo.source.reached == before
    called = await browser.send("/tools/mcp:demo:strict", {"arg.number": "7", "act": "call"})
    assert "Ran once" in text_of(called)
    records = [one for one in await node.events() if one.context.get("edge") == "web"]
    assert {one.event_type for one in records} == {
        "policy_decision", "tool_invocation_start", "tool_invocation_end",
    }  # fmt: skip
    assert {one.context["caller"] for one in records} == {"key:admin"}


async def test_what_stops_a_call_is_told_beside_the_form(node: Live) -> None:
    browser = await signed_in(node)
    await browser.get("/tools")
    wrong = await browser.send("/tools/mcp:demo:strict", {"arg.number": "x", "act": "call"})
    assert "number must be JSON" in text_of(wrong)
    denied = await browser.send("/tools/mcp:demo:write", {"mode": "planning", "act": "call"})
    assert "Planning mode cannot use tools with side effects" in text_of(denied)
    asks = await browser.send("/tools/mcp:demo:deploy", {"act": "call"})
    assert "A person is asked" in text_of(asks)
    failed = await browser.send("/tools/mcp:demo:broken", {"act": "call"})
    assert "It may have run" in text_of(failed)
    assert b"sk-live" not in failed.body


async def test_a_key_sees_and_calls_its_own_tools_only(node: Live) -> None:
    browser = await signed_in(node, await node.key("narrow", tools=["mcp:demo:echo"]))
    listed = text_of(await browser.get("/tools"))
    assert ("mcp:demo:echo" in listed, "mcp:demo:rain" in listed) == (True, False)
    assert (await browser.get("/tools/mcp:demo:rain")).status == 404
    assert (await browser.send("/tools/mcp:demo:rain", {"act": "call"})).status == 404


async def test_tools_are_found_by_their_words(node: Live) -> None:
    browser = await signed_in(node)
    page = text_of(await browser.get("/tools?q=cloud.resource"))
    assert ("mcp:demo:deploy" in page, "mcp:demo:echo" in page) == (True, False)
    assert "No tool matches" in text_of(await browser.get("/tools?q=nothing-at-all"))


async def test_an_agent_answers_on_the_page_without_a_script(node: Live) -> None:
    browser = await signed_in(node)
    await browser.get("/agents/assistant")
    sent = await browser.send("/agents/assistant", {"message": "what time is it?", "talk": "one"})
    assert (sent.status, sent.headers["Location"]) == (303, "/agents/assistant?talk=one")
    page = text_of(await browser.get("/agents/assistant?talk=one"))
    assert "what time is it?" in page
    assert "system_time" in page
    [session] = (await node.get("/api/sessions")).json["sessions"]
    gone = await browser.send("/agents/assistant", {"act": "delete", "session": session["id"]})
    assert gone.status == 303
    assert (await node.get("/api/sessions")).json["sessions"] == []


async def test_an_agent_is_heard_as_it_speaks(node: Live) -> None:
    browser = await signed_in(node)
    await browser.get("/agents/assistant")
    heard = await browser.send("/agents/assistant/stream", {"message": "what time is it?"})
    assert heard.headers["Content-Type"] == "text/event-stream"
    names = re.findall(r"^event: (\w+)$", heard.body.decode(), re.MULTILINE)
    assert [name for name in names if name in {"wanted", "made", "ended", "result"}] == [
        "wanted", "made", "ended", "result",
    ]  # fmt: skip


async def test_keys_are_made_and_ended_and_the_secret_is_shown_once(node: Live) -> None:
    browser = await signed_in(node)
    await browser.get("/keys")
    made = await browser.send("/keys", {"act": "create", "name": "fresh", "role": "auditor"})
    [secret] = re.findall(r"of_[A-Za-z0-9_-]{20,}", made.body.decode())
    assert secret not in (await browser.get("/keys")).body.decode()
    other = await signed_in(node, secret)
    assert (await other.get("/audit")).status == 200
    ended = await browser.send("/keys", {"act": "revoke", "name": "fresh"})
    assert "fresh has ended" in text_of(ended)
    assert (await other.get("/audit")).status == 303
    assert (await other.send("/keys", {"act": "create", "name": "more"})).status == 303


async def test_nobody_manages_by_a_form_what_their_key_may_not(node: Live) -> None:
    user = await signed_in(node, await node.key("plain"))
    await user.get("/")
    acts = {
        "/keys": {"act": "create", "name": "mine", "role": "admin"},
        "/servers": {"act": "refresh"},
        "/servers/demo": {"act": "restart"},
        "/settings": {"act": "reload"},
        "/audit": {},
        "/policy": {"act": "replay", "draft": ""},
    }
    told = {path: (await user.send(path, form)).status for path, form in acts.items()}
    assert {status for path, status in told.items() if path != "/policy"} == {403}
    names = {one["name"] for one in (await node.get("/api/keys")).json["keys"]}
    assert "mine" not in names


async def test_the_log_is_found_verified_and_taken_along(node: Live) -> None:
    await node.call("mcp:demo:echo", {"text": "a needle"})
    browser = await signed_in(node, await node.key("a", role="auditor"))
    found = text_of(await browser.get("/audit?text=needle"))
    assert "tool_invocation_start" in found
    one = text_of(await browser.get("/audit?record=1"))
    assert ("#1 " in one, "#2 " in one) == (True, False)
    assert "The log is what was written" in text_of(await browser.send("/audit", {}))
    taken = await browser.get("/audit/export")
    assert taken.headers["Content-Disposition"] == 'attachment; filename="audit.jsonl"'
    assert b"a needle" in taken.body


async def test_rules_are_shown_explained_and_a_draft_is_replayed(
    tmp_path: Path, demo: Demo
) -> None:
    home = tmp_path / "home"
    rule = '[[rules]]\nname = "no-echo"\neffect = "deny"\ntools = ["mcp:demo:echo"]\n'
    async with live(home, sources=[demo.source]) as node:
        await node.call("mcp:demo:echo", {})
        browser = await signed_in(node)
        assert "No rules of your own" in text_of(await browser.get("/policy"))
        replayed = text_of(await browser.send("/policy", {"act": "replay", "draft": rule}))
        assert "1 call held against the draft" in replayed
        assert "no-echo" in replayed
        wrong = text_of(
            await browser.send("/policy", {"act": "replay", "draft": "[[rules]]\nx = 1"})
        )
        assert "draft" in wrong
        told = text_of(await browser.send("/policy", {"act": "explain", "tool": "mcp:demo:write"}))
        assert "Would be allowed" in told
        await anyio.Path(home / "policy.toml").write_text(rule)
        assert (await browser.send("/settings", {"act": "reload"})).status == 303
        assert "no-echo" in text_of(await browser.get("/policy"))


async def test_a_task_is_watched_and_ended(tmp_path: Path, demo: Demo) -> None:
    async with live(
        tmp_path / "home", config="[a2a]\nenabled = true\n", sources=[demo.source]
    ) as node:
        sent = await node.post(
            "/api/a2a/tasks", {"agent": "assistant", "message": "what time is it?"}
        )
        task = sent.json["id"]
        browser = await signed_in(node)
        assert "assistant" in text_of(await browser.get("/tasks"))
        with anyio.fail_after(20):
            while "Completed" not in text_of(await browser.get(f"/tasks/{task}")):
                pass
        ended = text_of(await browser.send(f"/tasks/{task}", {}))
        assert "Cancel this task" not in ended
        other = await signed_in(node, await node.key("other"))
        assert (await other.get(f"/tasks/{task}")).status == 404
