"""`/api/agents`: who is there for whom, a message as a call, and its answer as it comes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.edges.live import live
from tests.edges.sse import Stream

from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.core.agents import Ended, Ending, Made, Usage, Wanted, Wish, Words
from openfang.core.errors import NotFound, SourceFailed
from openfang.core.progress import Progress
from openfang.core.results import Receipt
from openfang.core.session import Options
from openfang.core.telling import KINDS, read_told, told_body, told_name
from openfang.edges.api.exchange import Answer
from openfang.edges.api.progress import _Told, always_streamed
from openfang.host.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live
    from tests.edges.sse import Event

    from openfang.core.progress import Told

pytestmark = pytest.mark.requirement("C6.1", "C6.4", "C12.5")

CODE = 'name = "{name}"\nmodule = "python:agent.py"\n[capabilities]\ntools = ["mcp:demo:*"]\n'
PROGRAMS = {
    "waiter": """
async def run(message, context):
    context.stream("I wait ")
    await context.call("mcp:demo:wait")
    return "I waited"
""",
    "maker": """
async def run(message, context):
    context.artifact("note.md", "# " + message)
    context.artifact("image", bytes(3), "image/png")
    context.artifact("table", {"parts": len(context.parts), **context.metadata})
    context.artifact("both", parts=[{"type": "text", "text": one} for one in "ab"])
    return "made"
""",
    "broken": """
def run(message, context):
    context.stream("I begin ")
    raise RuntimeError("and fall")
""",
}
CARD = {"name", "title", "description", "version", "tags", "model"}
GRANTS = {"tools", "network", "shell", "memory_read", "memory_write", "agents", "agent_spawn"}
BOUND = {"agent_kill", "mode", "projects", "spec", "blacklist", "workspace", "parent"}
SPENT = {"tokens_per_hour", "cost_usd_per_hour", "tool_calls", "tool_calls_per_minute"}
HELD = {"tool_timeout_secs", "receive_from", "deny_paths", "sandbox", "layers"}
INSIDE = GRANTS | BOUND | SPENT | HELD
REPLY = {"response", "session", "ending", "usage", "artifacts", "call_id", "audit"}


def write_programs(home: Path) -> None:
    for name, text in PROGRAMS.items():
        folder = home / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.py").write_text(text)
        (folder / "agent.toml").write_text(CODE.format(name=name))


@pytest.fixture
async def node(tmp_path: Path, demo: Demo) -> AsyncGenerator[Live]:
    """A node with the agents of a new home, and two programs."""
    home = tmp_path / "home"
    await to_thread.run_sync(write_programs, home)
    async with live(home, sources=[demo.source]) as running:
        yield running


@asynccontextmanager
async def streaming(node: Live, agent: str, text: str, **more: Any) -> AsyncGenerator[Stream]:
    url, sent = node.at(f"/api/agents/{agent}/stream"), node.headers(more.pop("key", ""))
    body = {"message": text, **more}
    async with node.web.post(url, json=body, headers=sent) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        yield Stream(response)


async def streamed(node: Live, agent: str, text: str, **more: Any) -> list[Event]:
    async with streaming(node, agent, text, **more) as stream:
        return await stream.rest()


async def tell(node: Live, agent: str, text: str, **more: Any) -> Any:
    key = more.pop("key", "")
    return await node.post(f"/api/agents/{agent}/message", {"message": text, **more}, key=key)


async def test_a_key_sees_the_agents_that_it_may_call_and_no_other(node: Live) -> None:
    everything = (await node.get("/api/agents")).json
    assert [one["name"] for one in everything["agents"]] == [
        *("assistant", "broken", "echo", "maker", "waiter"),
    ]
    assert everything["total"] == 5
    assert set(everything["agents"][0]) == CARD | INSIDE
    assert "builtin:file_read" in everything["agents"][0]["tools"]
    narrow = await node.key("narrow", tools=["agent:echo", "system_time"])
    (seen,) = (await node.get("/api/agents", key=narrow)).json["agents"]
    assert (seen["name"], seen["model"], set(seen)) == ("echo", "python:agent.py", CARD)
    assert (await node.get("/api/agents/echo", key=narrow)).json == seen
    for path in ("/api/agents/assistant", "/api/agents/nobody"):
        hidden = await node.get(path, key=narrow)
        assert hidden.told == (404, "not_found")
        assert "assistant" not in hidden.problem["detail"].removeprefix("No agent assistant")
    assert (await node.get("/api/agents/assistant")).json == everything["agents"][0]


async def test_a_message_is_a_governed_call_of_the_agent(node: Live) -> None:
    reply = await tell(node, "assistant", "what time is it?")
    body = reply.json
    assert set(body) == REPLY
    assert body["response"].startswith("20")
    assert (body["ending"], body["usage"]["requests"]) == ("answered", 2)
    started = [one for one in await node.events() if one.event_type == "tool_invocation_start"]
    outer, inner = started
    assert (outer.context["tool"], outer.context["caller"]) == ("agent:assistant", "key:admin")
    assert (inner.context["tool"], inner.context["caller"]) == (
        "builtin:system_time",
        "agent:assistant",
    )
    assert outer.call_id == body["call_id"]
    assert body["audit"]["start"] == outer.audit_id
    assert outer.audit_id < inner.audit_id < body["audit"]["end"]


async def test_what_an_agent_makes_comes_with_its_answer_and_what_it_is_given_reaches_it(
    node: Live,
) -> None:
    given = {"parts": [{"type": "text", "text": "a"}], "metadata": {"from": "me"}}
    made = [
        {"name": "note.md", "parts": [{"type": "text", "text": "# hi"}]},
        {"name": "image", "parts": [_embedded("image", "image/png", blob="AAAA")]},
        {
            "name": "table",
            "parts": [_embedded("table", "application/json", text='{"parts": 1, "from": "me"}')],
        },
        {"name": "both", "parts": [{"type": "text", "text": one} for one in "ab"]},
    ]
    reply = await tell(node, "maker", "hi", **given)
    assert (reply.json["response"], reply.json["artifacts"]) == ("made", made)
    assert (await streamed(node, "maker", "hi", **given))[-1].data["artifacts"] == made
    assert (await tell(node, "echo", "hi")).json["artifacts"] == []


def _embedded(name: str, mime: str, **content: str) -> dict[str, Any]:
    resource = {"uri": f"artifact:{name}", "mimeType": mime, **content}
    return {"type": "resource", "resource": resource}


async def test_a_conversation_goes_on_under_its_name(node: Live) -> None:
    first = (await tell(node, "assistant", "hello")).json["session"]
    assert (await tell(node, "assistant", "hello again")).json["session"] == first
    other = (await tell(node, "assistant", "hello", session="work")).json["session"]
    assert other != first
    turns = (await node.get(f"/api/sessions/{first}")).json["turns"]
    assert [one["text"] for one in turns if one["speaker"] == "user"] == ["hello", "hello again"]
    anna = await node.key("anna")
    assert (await tell(node, "assistant", "hello", key=anna)).json["session"] not in {first, other}


async def test_what_refuses_a_call_refuses_a_message(node: Live) -> None:
    narrow = await node.key("narrow", tools=["agent:echo"])
    assert (await tell(node, "assistant", "hello", key=narrow)).told == (404, "unknown_tool")
    assert (await tell(node, "nobody", "hello")).told == (404, "unknown_tool")
    assert (await tell(node, "echo%3A", "hello")).told == (404, "unknown_tool")
    blank: list[Any] = [
        {},
        {"message": 1},
        {"message": "a", "session": ""},
        {"message": "a", "x": 1},
    ]
    for body in blank:
        for way in ("message", "stream"):
            reply = await node.post(f"/api/agents/echo/{way}", body)
            assert (body, reply.told) == (body, (422, "body"))
    long = BytesIO(b'{"message": "%b"}' % (b"x" * 1_200_000))
    kind = {"Content-Type": "application/json"}
    reply = await node.ask("POST", "/api/agents/echo/message", data=long, headers=kind)
    assert reply.told == (422, "arguments_too_large")


async def test_an_answer_that_is_cut_says_where_the_whole_of_it_is(node: Live) -> None:
    body = (await tell(node, "echo", "x" * 60_000)).json
    assert body["response"][:50_000] == "x" * 50_000
    assert body["session"].startswith("session_")
    assert (body["ending"], body["usage"]["requests"]) == ("answered", 0)
    uri = body["response"].rpartition("openfang://results/")[2].rstrip("]")
    whole = (await node.get(f"/api/results/{uri}")).json
    assert whole["structured"]["response"] == "x" * 60_000


@pytest.mark.requirement("C7.7")
async def test_a_message_can_tighten_what_its_calls_are_bound_to(node: Live) -> None:
    await tell(node, "assistant", "Remember that my pin is 12")
    planning = {"mode": "planning", "task_id": "t1"}
    body = (await tell(node, "assistant", "Remember that my pin is 13", context=planning)).json
    assert "Planning mode cannot use tools with side effects" in body["response"]
    wrong = await tell(node, "assistant", "hello", context={"mode": "dreaming"})
    assert wrong.told == (422, "body")
    other = await tell(node, "assistant", "hello", context={"project_id": "another"})
    assert other.told == (403, "context.project")


async def test_the_session_of_an_answer_is_where_it_goes_on(node: Live) -> None:
    first = (await tell(node, "echo", "one", session="talk")).json["session"]
    assert (await tell(node, "echo", "two", session=first)).json["session"] == first
    assert (await node.get(f"/api/sessions/{first}")).json["messages"] == 4
    other = await tell(node, "assistant", "hello", session=first)
    assert other.json["structured"]["code"] == "source_failed"
    stranger = await node.key("stranger")
    refused = await tell(node, "echo", "three", session=first, key=stranger)
    assert "has no session" in refused.json["content"][0]["text"]


async def test_a_silent_run_says_that_it_is_alive() -> None:
    answered = anyio.Event()

    async def late(told: object) -> Answer:
        del told
        await answered.wait()
        return Answer(body=b"{}")

    beats = 0
    with anyio.fail_after(30):
        async for piece in always_streamed(late, beat=0.01).pieces:
            if piece.startswith(b":"):
                beats += 1
                answered.set()
            else:
                assert piece.startswith(b"event: result")
    assert beats >= 1


async def test_a_message_costs_thirty_cells_once(tmp_path: Path) -> None:
    limits = "[limits]\ncells_per_minute = 60\nburst = 62\n"
    async with live(tmp_path / "home", config=limits) as node:
        left = (await node.get("/api/health", key=None)).status
        assert left == 200
        first = await tell(node, "assistant", "hello")
        assert (first.status, first.headers["RateLimit-Remaining"]) == (200, "32")
        assert (await tell(node, "nobody", "hello")).headers["RateLimit-Remaining"] == "27"
        assert (await tell(node, "assistant", "hello")).told == (429, "rate_limit")
        (event,) = await streamed(node, "assistant", "hello")
        assert (event.kind, event.data["rule"]) == ("problem", "rate_limit")


async def test_a_stream_tells_calls_and_words_as_they_come_and_ends_with_the_answer(
    node: Live,
) -> None:
    found = await streamed(node, "assistant", "what time is it?")
    kinds = [one.kind for one in found]
    assert kinds == ["wanted", "made", "words", "ended", "result"]
    wanted, made, words, ended, result = (one.data for one in found)
    assert wanted == {"id": made["id"], "tool": "system_time", "arguments": {}}
    assert (made["outcome"], made["text"]) == ("ok", words["text"])
    assert result["audit"]["start"] < made["audit"]["start"] < made["audit"]["end"]
    assert ended == {key: result[key] for key in ("response", "ending", "usage")}
    assert set(result) == REPLY
    told = (await tell(node, "assistant", "what time is it?")).json
    assert told["session"] == result["session"]


async def test_a_stream_says_a_refusal_and_a_failure_in_its_last_event(node: Live) -> None:
    (refused,) = await streamed(node, "nobody", "hello")
    assert (refused.kind, refused.data["rule"]) == ("problem", "unknown_tool")
    *said, failed = await streamed(node, "broken", "hello")
    assert [one.data for one in said if one.kind == "words"] == [{"text": "I begin "}]
    assert (failed.kind, failed.data["structured"]["code"]) == ("failure", "source_failed")
    reply = await tell(node, "broken", "hello")
    assert (reply.status, reply.headers["OpenFang-Failure"]) == (200, "source_failed")


async def test_words_come_while_the_agent_is_still_at_it(node: Live, demo: Demo) -> None:
    async with streaming(node, "waiter", "hello") as stream:
        seen = [await stream.next(), await stream.next()]
        assert [one.kind for one in seen if one] == ["words", "wanted"]
        await demo.begun.wait()
        demo.released.set()
        rest = await stream.rest()
    assert [one.kind for one in rest] == ["made", "ended", "result"]
    assert rest[-1].data["response"] == "I waited"


async def test_who_hangs_up_cancels_the_run_and_its_call(node: Live, demo: Demo) -> None:
    async with streaming(node, "waiter", "hello") as stream:
        await demo.begun.wait()
        stream.response.close()
    with anyio.fail_after(20):
        await demo.cancelled.wait()
        found: list[str] = []
        while len(found) < 2:
            found = await endings(node)
    assert found == ["cancelled", "cancelled"]


async def endings(node: Live) -> list[str]:
    events = [one for one in await node.events() if one.event_type == "tool_invocation_end"]
    return [one.payload["outcome"] for one in events]


async def test_a_remote_session_hears_and_sees_what_one_in_process_does(node: Live) -> None:
    heard: dict[str, list[Told]] = {"local": [], "remote": []}
    arguments = {"message": "what time is it?"}
    served = node.served.app.node.session(node.app.caller, node.app.make("x", {}).chain)
    await served.call("agent:assistant", arguments, Options(progress=heard["local"].append))
    async with Loopback(node.url, headers=[("Authorization", f"Bearer {node.admin}")]) as client:
        remote = Remote(Asking(client))
        options = Options(progress=heard["remote"].append)
        await remote.call("agent:assistant", arguments, options)
        assert await remote.agents() == await served.agents()
        assert await remote.agent("echo") == await served.agent("echo")
        for name in ("", "nobody", "a/b"):
            with pytest.raises(NotFound):
                await remote.agent(name)
        with pytest.raises(SourceFailed, match="and fall"):
            await remote.call("agent:broken", arguments, options)
    kinds = [type(one) for one in heard["local"]]
    assert kinds == [Wanted, Made, Words, Ended]
    assert [type(one) for one in heard["remote"]][:4] == kinds
    made = heard["remote"][1]
    assert isinstance(made, Made)
    assert made.receipt


_TEXT = st.text(max_size=20)
_WISHES = st.builds(
    Wish, id=_TEXT, tool=_TEXT, arguments=st.dictionaries(_TEXT, st.integers() | _TEXT, max_size=3)
)
_USAGE = st.builds(Usage, requests=st.integers(0, 9), cost_usd=st.floats(0, 9))
_TOLD = st.one_of(
    st.builds(
        Progress,
        progress=st.floats(0, 9),
        total=st.none() | st.floats(0, 9),
        message=_TEXT,
    ),
    st.builds(Words, _TEXT),
    st.builds(Wanted, _WISHES),
    st.builds(
        Made,
        wish=st.builds(Wish, id=_TEXT, tool=_TEXT),
        outcome=_TEXT,
        text=_TEXT,
        receipt=st.none()
        | st.builds(Receipt, start=st.integers(0), end=st.integers(0), hash=_TEXT),
    ),
    st.builds(Ended, answer=_TEXT, ending=st.sampled_from(Ending), usage=_USAGE),
)


@given(_TOLD)
@settings(max_examples=100)
def test_what_is_told_comes_back_as_it_was(told: Told) -> None:
    assert told_name(told) in KINDS
    assert read_told(told_name(told), told_body(told)) == told


def test_of_a_result_the_first_two_thousand_characters_are_told() -> None:
    made = Made(wish=Wish(id="a", tool="b"), outcome="ok", text="x" * 3000)
    assert told_body(made)["text"] == "x" * 2000


async def test_a_client_that_does_not_read_is_kept_within_bounds() -> None:
    told = _Told()
    for number in range(1000):
        told.take(Progress(progress=number))
    for _ in range(1000):
        told.take(Words("x" * 100_000))
    told.take(Ended(answer="y" * 200_000))
    piece, _, last = told.give().partition(b"event: ended")
    assert piece.count(b"event: progress") == 200
    assert 3_800_000 < len(piece) <= 4_000_000
    assert b"y" * 200_000 in last
    assert (told.give(), told.some.is_set()) == (b"", False)
