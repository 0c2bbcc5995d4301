"""`/v1/chat/completions` by OpenAI's own client: whole, and as it comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.openai.clients import assistant, client_of, user

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C12.4")

PIXEL = "data:image/png;base64,iVBORw0KGgo="


async def complete(client: AsyncOpenAI, model: str, *messages: Any, **more: Any) -> Any:
    made: Any = client.chat.completions.create
    return await made(model=model, messages=[*messages], **more)


async def said(client: AsyncOpenAI, model: str, *messages: Any, **more: Any) -> str:
    done = await complete(client, model, *messages, **more)
    return done.choices[0].message.content


async def chunks(client: AsyncOpenAI, model: str, *messages: Any, **more: Any) -> list[Any]:
    stream = await complete(client, model, *messages, stream=True, **more)
    return [one async for one in stream]


def words(found: list[Any]) -> list[str]:
    pieces = [one.choices[0].delta.content for one in found if one.choices]
    return [piece for piece in pieces if piece]


async def told(client: AsyncOpenAI, *messages: Any, **more: Any) -> Any:
    """What reaches an agent that is a program."""
    return json.loads(await said(client, "told", *messages, **more))


async def test_the_models_are_the_agents_that_the_key_may_call(
    node: Live, client: AsyncOpenAI
) -> None:
    listed = await client.models.list()
    assert [one.id for one in listed.data] == [
        *("assistant", "broken", "echo", "no", "told", "waiter"),
    ]
    assert {(one.object, one.owned_by) for one in listed.data} == {("model", "openfang")}
    narrow = await node.key("narrow", tools=["agent:echo"])
    async with client_of(node, narrow) as other:
        assert [one.id for one in (await other.models.list()).data] == ["echo"]
    for name in ("echo", "openfang:echo", "agent:echo"):
        assert (await client.models.retrieve(name)).id == "echo"
        assert await said(client, name, user("hi")) == "hi"


async def test_an_answer_is_a_completion(client: AsyncOpenAI, node: Live) -> None:
    done = await complete(client, "assistant", user("what time is it?"))
    (choice,) = done.choices
    assert (done.object, done.model, choice.index) == ("chat.completion", "assistant", 0)
    assert done.id.startswith("chatcmpl-")
    assert abs(done.created - node.served.app.node.now() / 1e9) < 100
    assert (choice.message.role, choice.finish_reason) == ("assistant", "stop")
    assert choice.message.content.startswith("20")
    assert choice.message.tool_calls is None
    usage = done.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    ours = done.openfang
    assert ours["session"].startswith("session_")
    assert ours["ending"] == "answered"


async def test_a_completion_is_a_governed_call_of_the_agent(
    client: AsyncOpenAI, node: Live
) -> None:
    done = await complete(client, "assistant", user("what time is it?"))
    started = [one for one in await node.events() if one.event_type == "tool_invocation_start"]
    outer, inner = started
    assert (outer.context["tool"], outer.context["edge"]) == ("agent:assistant", "openai")
    assert (inner.context["tool"], inner.context["caller"]) == (
        "builtin:system_time",
        "agent:assistant",
    )
    assert outer.call_id == done.openfang["call_id"]
    assert done.openfang["audit"]["start"] == outer.audit_id


async def test_a_stream_begins_with_its_role_and_says_words_as_they_come(
    client: AsyncOpenAI,
) -> None:
    first, *middle, last = await chunks(client, "echo", user("one two three"))
    assert first.choices[0].delta.role == "assistant"
    assert words(middle) == ["one ", "two ", "three "]
    assert (last.choices[0].finish_reason, last.choices[0].delta.content) == ("stop", None)
    assert last.openfang["ending"] == "answered"
    assert {one.object for one in (first, *middle, last)} == {"chat.completion.chunk"}
    assert len({one.id for one in (first, *middle, last)}) == 1
    assert all(one.usage is None for one in (first, *middle, last))


async def test_usage_comes_in_a_chunk_of_its_own_where_it_is_asked_for(
    client: AsyncOpenAI,
) -> None:
    found = await chunks(client, "assistant", user("hello"), stream_options={"include_usage": True})
    *others, last = found
    assert (last.choices, last.usage.total_tokens) == ([], 0)
    assert [one.usage for one in others] == [None] * len(others)


async def test_tools_that_the_agent_uses_are_told_beside_and_not_as_calls_for_the_client(
    client: AsyncOpenAI,
) -> None:
    found = await chunks(client, "assistant", user("what time is it?"))
    assert not any(one.choices[0].delta.tool_calls for one in found)
    noted = [one.openfang for one in found if hasattr(one, "openfang")]
    assert [one.get("event") for one in noted] == ["wanted", "made", None]
    wanted, made, _ = noted
    assert (wanted["tool"], made["outcome"]) == ("system_time", "ok")
    assert "".join(words(found)) == made["text"]
    assert found[-1].choices[0].finish_reason == "stop"


async def test_what_an_agent_says_at_last_is_in_the_stream_once(
    client: AsyncOpenAI, demo: Demo
) -> None:
    demo.released.set()
    assert "".join(words(await chunks(client, "waiter", user("hello")))) == "I wait \n\nI waited"
    found = await chunks(client, "told", user("hello"))
    assert json.loads("".join(words(found)))["message"] == "hello"
    refused = await chunks(client, "no", user("hello"))
    assert "".join(words(refused)) == "that is not mine to do"
    assert refused[-1].choices[0].delta.refusal == "that is not mine to do"
    whole = await complete(client, "no", user("hello"))
    assert (whole.choices[0].message.refusal, whole.choices[0].finish_reason) == (
        "that is not mine to do",
        "stop",
    )


async def test_the_whole_history_reaches_the_agent_and_nothing_twice(
    client: AsyncOpenAI, node: Live
) -> None:
    system = {"role": "system", "content": "Be brief."}
    first = await told(client, system, user("one"))
    assert (first["message"], first["history"]) == ("one", [])
    assert first["metadata"] == {"instructions": "Be brief."}
    second = await told(client, system, user("one"), assistant("first"), user("two"))
    assert second["message"] == "two"
    assert [(one["role"], one["text"]) for one in second["history"]] == [
        ("user", "one"),
        ("agent", "first"),
    ]
    assert second["session"] == first["session"]
    turns = (await node.get(f"/api/sessions/{first['session']}")).json["turns"]
    assert [one["text"] for one in turns if one["speaker"] == "user"] == ["one", "two"]
    again = await told(client, user("one"))
    assert (again["session"], again["history"]) == (first["session"], [])


async def test_a_session_that_is_named_goes_on_by_itself(client: AsyncOpenAI) -> None:
    named = {"extra_headers": {"X-OpenFang-Session": "work"}}
    first = await told(client, user("one"), **named)
    second = await told(client, user("two"), **named)
    assert second["session"] == first["session"]
    assert [one["role"] for one in second["history"]] == ["user", "agent"]
    third = await told(client, user("three"), metadata={"session": "work"})
    assert (third["session"], len(third["history"])) == (first["session"], 4)
    assert third["metadata"] == {"session": "work"}
    own = await told(client, user("a"), assistant("b"), user("four"), **named)
    assert [one["text"] for one in own["history"]] == ["a", "b"]
    other = await told(client, user("one"), user="somebody")
    assert other["session"] not in {first["session"], (await told(client, user("one")))["session"]}


async def test_two_callers_never_share_a_session(client: AsyncOpenAI, node: Live) -> None:
    mine = await told(client, user("one"), metadata={"session": "work"})
    async with client_of(node, await node.key("anna")) as other:
        theirs = await told(other, user("one"), metadata={"session": "work"})
        assert (theirs["session"] != mine["session"], theirs["history"]) == (True, [])
        assert (await told(other, user("x")))["session"] != (await told(client, user("x")))[
            "session"
        ]


async def test_pictures_and_files_travel_with_the_message(client: AsyncOpenAI) -> None:
    picture = {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}
    file = {
        "type": "file",
        "file": {"filename": "a.csv", "file_data": "data:text/csv;base64,YSxi"},
    }
    text = {"type": "text", "text": "look"}
    seen = await told(client, user([text, picture, file]))
    assert seen["message"] == "look"
    assert seen["parts"] == [
        {"type": "file", "name": "image", "mime_type": "image/png", "data": PIXEL[22:]},
        {"type": "file", "name": "a.csv", "mime_type": "text/csv", "data": "YSxi"},
    ]
    later = await told(client, user([text, picture]), assistant("a dot"), user("which colour?"))
    assert later["history"][0]["text"] == "look\n\nAttached: image (image/png, 8 bytes)"
    large = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
    kept = await told(client, user([text, large]))
    assert kept["parts"][0]["data"] == 2_000_000


async def test_many_at_once_are_answered_each(client: AsyncOpenAI) -> None:
    found: dict[int, str] = {}

    async def one(number: int) -> None:
        ask = chunks if number % 2 else complete
        done: Any = await ask(client, "echo", user(f"number {number}"))
        whole = number % 2 == 0
        said = done.choices[0].message.content if whole else "".join(words(done))
        found[number] = said.strip()

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(one, number)
    assert found == {number: f"number {number}" for number in range(10)}


@pytest.mark.parametrize("stream", [True, False])
async def test_who_hangs_up_ends_the_run(
    client: AsyncOpenAI, node: Live, demo: Demo, *, stream: bool
) -> None:
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            await (chunks if stream else complete)(client, "waiter", user("hello"))

        tasks.start_soon(ask)
        await demo.begun.wait()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(20):
        await demo.cancelled.wait()
        found: list[str] = []
        while len(found) < 2:
            events = await node.events()
            ends = [one for one in events if one.event_type == "tool_invocation_end"]
            found = [one.payload["outcome"] for one in ends]
    assert found == ["cancelled", "cancelled"]
