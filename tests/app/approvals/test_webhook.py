"""Questions sent to a webhook, signed and again until they are taken; tokens that answer once."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest
from tests.app.a2a.pushing import Receiver, Taken, receiving
from tests.edges.demo import Demo
from tests.edges.live import live

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C3.9", "C15.1", "C15.2")
TOOL, SECRET = "mcp:demo:deploy", "whsec_" + b64encode(b"a secret of sixteen or more").decode()


def config(url: str, *, private: bool = True, more: str = "", secret: str = SECRET) -> str:
    opened = str(private).lower()
    hook = f'url = "{url}"\nsecret = "{secret}"\nallow_private = {opened}\n'
    return f"[approvals]\n{more}\n[approvals.webhook]\n{hook}"


@asynccontextmanager
async def hooked(
    folder: Path, *answers: int, more: str = "", private: bool = True
) -> AsyncGenerator[tuple[Live, Receiver, Demo]]:
    demo = Demo()
    async with receiving(*answers) as receiver:
        told = config(receiver.url(), private=private, more=more)
        async with live(folder / "home", config=told, sources=[demo.source]) as node:
            yield node, receiver, demo


async def records(node: Live, event: str) -> list[Any]:
    found = (await node.get(f"/api/audit?event={event}")).json["records"]
    return [one["payload"] for one in found]


async def on_record(node: Live, event: str) -> Any:
    """Wait for a record."""
    with anyio.fail_after(20):
        while not (found := await records(node, event)):
            pass
    return found[0]


async def reply(node: Live, sent: Taken, verb: str, **more: str) -> Reply:
    """Answer as the receiver does: by the address and a token that it was sent, without a key."""
    answer = orjson.loads(sent.body)["answer"]
    path = answer["url"].removeprefix(node.url)
    query = "".join(f"?{name}={value}" for name, value in more.items())
    return await node.post(f"{path}{query}", key=answer[verb])


async def test_a_question_is_sent_signed_and_its_token_answers_it_once(tmp_path: Path) -> None:
    async with hooked(tmp_path) as (node, receiver, demo):
        password = "hunter2-and-more"
        asked = {"text": "prod", "password": password}
        question = (await node.call(TOOL, asked)).json["approval"]
        await receiver.times(1)
        (sent,) = receiver.taken
        signed = f"{sent.headers['webhook-id']}.{sent.headers['webhook-timestamp']}.".encode()
        key = b64decode(SECRET.removeprefix("whsec_"))
        mac = b64encode(hmac.digest(key, signed + sent.body, "sha256")).decode()
        assert sent.headers["webhook-signature"] == f"v1,{mac}"
        assert sent.headers["webhook-id"] == question
        body = orjson.loads(sent.body)
        assert (body["type"], body["question"]["id"]) == ("approval.requested", question)
        assert body["question"] == (await node.get(f"/api/approvals/{question}")).json
        assert password.encode() not in sent.body
        delivered = await on_record(node, "approval_delivered")
        assert (delivered["question"], delivered["host"]) == (question, "127.0.0.1")

        assert (await reply(node, sent, "approve", by="ann")).json["state"] == "approved"
        assert (await reply(node, sent, "approve")).status == 409
        assert (await reply(node, sent, "deny")).told == (403, "answer_token")
        assert (await node.call(TOOL, asked)).status == 200
        assert (await reply(node, sent, "approve")).status == 409
        assert (await node.call(TOOL, asked)).status == 202
        assert demo.source.reached == 1
        (answered,) = await records(node, "approval_answered")
        assert (answered["answered_by"], answered["via"]) == ("webhook:ann", "webhook")
        token = body["answer"]["approve"]
        assert token not in str((await node.get("/api/audit?limit=1000")).json)


async def test_a_token_answers_no_other_question_nor_with_another_byte(tmp_path: Path) -> None:
    async with hooked(tmp_path) as (node, receiver, demo):
        for text in ("one", "two"):
            assert (await node.call(TOOL, {"text": text})).status == 202
        await receiver.times(2)
        first, second = (orjson.loads(one.body) for one in receiver.taken)
        token = first["answer"]["approve"]
        path = "/api/approvals/{}/answer"
        elsewhere = path.format(second["question"]["id"])
        here = path.format(first["question"]["id"])
        nowhere = path.format("ask_none")
        changed = token[:-2] + ("a" if token[-2] != "a" else "b") + token[-1]
        for address, given in ((elsewhere, token), (nowhere, token), (here, changed)):
            told = await node.post(address, key=given)
            assert told.told == (401, "answer_token")
        assert (await node.post(here, key=node.admin)).told == (401, "answer_token")
        assert (await node.get("/api/approvals", key=token)).status == 401
        assert (await node.post(here, key=token)).status == 200
        told = [one["rule"] for one in await records(node, "policy_violation")]
        assert told.count("answer_token") == 4
        assert (await node.call(TOOL, {"text": "two"})).status == 202
        assert demo.source.reached == 0


async def test_another_secret_makes_what_was_sent_before_worthless(tmp_path: Path) -> None:
    async with hooked(tmp_path) as (node, receiver, _):
        assert (await node.call(TOOL)).status == 202
        await receiver.times(1)
        other = config(receiver.url(), secret="another secret of its own")
        node.config_file.write_text(other)
        assert (await node.post("/api/config/reload")).status == 200
        assert (await reply(node, receiver.taken[0], "approve")).told == (401, "answer_token")


async def test_what_is_not_taken_is_sent_again_and_what_is_refused_is_not(tmp_path: Path) -> None:
    async with hooked(tmp_path, 503, 200, 410) as (node, receiver, _):
        assert (await node.call(TOOL, {"text": "one"})).status == 202
        await receiver.times(2)
        first, again = (orjson.loads(one.body) for one in receiver.taken)
        assert first["answer"] == again["answer"]
        assert (await on_record(node, "approval_delivered"))["tries"] == 2
        assert (await node.call(TOOL, {"text": "two"})).status == 202
        assert "410" in (await on_record(node, "approval_undelivered"))["reason"]
        assert len(receiver.taken) == 3


async def test_nothing_is_sent_inside_unless_the_operator_says_so(tmp_path: Path) -> None:
    async with hooked(tmp_path, private=False) as (node, receiver, _):
        assert (await node.call(TOOL)).status == 202
        timers = node.app.parts.timers.store
        with anyio.fail_after(20):
            while not any(one.tries for one in await timers.soonest("approval", 10)):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert receiver.taken == []


async def test_a_question_that_is_answered_before_it_is_sent_is_not_sent(tmp_path: Path) -> None:
    async with hooked(tmp_path, 503) as (node, receiver, _):
        question = (await node.call(TOOL)).json["approval"]
        await receiver.times(1)
        await node.post(f"/api/approvals/{question}", {"answer": "deny"})
        timers = node.app.parts.timers.store
        with anyio.fail_after(20):
            while await timers.soonest("approval", 10):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert len(receiver.taken) == 1


async def test_where_four_eyes_are_wanted_the_receiver_may_not_name_who_asked(
    tmp_path: Path,
) -> None:
    async with hooked(tmp_path, more='four_eyes = ["mcp:demo:*"]') as (node, receiver, _):
        assert (await node.call(TOOL)).status == 202
        await receiver.times(1)
        (sent,) = receiver.taken
        assert (await reply(node, sent, "approve", by="admin")).told == (403, "four_eyes")
        assert (await reply(node, sent, "approve", by="ann")).status == 200


async def test_what_nobody_answers_is_denied_on_record_with_nobody_looking(tmp_path: Path) -> None:
    async with hooked(tmp_path, more="timeout_secs = 0.3") as (node, receiver, demo):
        waited = await node.call(TOOL, {"text": "waits"}, headers={"Prefer": "wait=30"})
        assert waited.told == (403, "approval_denied")
        question = (await node.call(TOOL, {"text": "parked"})).json["approval"]
        with anyio.fail_after(20):
            while len(told := await records(node, "approval_answered")) < 2:
                pass
        assert {one["via"] for one in told} == {"timeout"}
        assert {(one["state"], one["answered_by"]) for one in told} == {("denied", None)}
        assert question in {one["question"] for one in told}
        found = (await node.get("/api/approvals?state=expired")).json
        assert found["total"] == 2
        await receiver.times(2)
        assert (await reply(node, receiver.taken[-1], "approve")).status == 409
        assert demo.source.reached == 0
