"""What refuses a completion, as OpenAI's client takes it: the right exception, and the reason."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

import anyio
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.edges.openai.clients import assistant, client_of, served, user
from tests.edges.openai.test_completions import chunks, complete

if TYPE_CHECKING:
    from pathlib import Path

    from openai import AsyncOpenAI
    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C12.4")

COMPLETIONS = "/v1/chat/completions"
JSON_TYPE = {"Content-Type": "application/json"}


def asked(**more: Any) -> dict[str, Any]:
    return {"model": "echo", "messages": [user("hi")], **more}


def call(number: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": "f", "arguments": arguments}}


def calls(*made: Any) -> Any:
    return {"role": "assistant", "content": None, "tool_calls": [*made]}


def result(number: str) -> Any:
    return {"role": "tool", "tool_call_id": number, "content": "done"}


def shape(reply: Reply) -> tuple[int, str | None, str | None]:
    """Status, place and code of an error, whose form is checked."""
    error = reply.json["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert reply.headers["Content-Type"] == "application/json"
    return reply.status, error["param"], error["code"]


@pytest.mark.parametrize("stream", [True, False])
async def test_refusals_are_the_exceptions_of_the_client(
    node: Live, client: AsyncOpenAI, *, stream: bool
) -> None:
    async def failing(client: AsyncOpenAI, model: str = "echo", **more: Any) -> Any:
        with pytest.raises(openai.APIStatusError) as caught:
            await complete(client, model, user("hi"), stream=stream, **more)
        return caught.value

    async with client_of(node, "of_wrong") as nobody:
        wrong = await failing(nobody)
    assert (type(wrong), wrong.code) == (openai.AuthenticationError, "invalid_api_key")
    unknown = await failing(client, "nobody")
    assert (type(unknown), unknown.code) == (openai.NotFoundError, "model_not_found")
    assert unknown.param == "model"
    bad = await failing(client, n=2)
    assert (type(bad), bad.code, bad.param) == (
        openai.BadRequestError,
        "unsupported_parameter",
        "n",
    )
    assert "Way out: leave it out, or send 1." in bad.message
    async with client_of(node, await node.key("api-only", edges=["api"])) as elsewhere:
        kept_out = await failing(elsewhere)
    assert (type(kept_out), kept_out.code) == (openai.PermissionDeniedError, "edge")
    async with client_of(node, await node.key("narrow", tools=["agent:told"])) as narrow:
        assert isinstance(await failing(narrow), openai.NotFoundError)
    bound = await failing(client, extra_body={"context": {"project_id": "another"}})
    assert (type(bound), bound.code) == (openai.PermissionDeniedError, "context.project")


async def test_a_key_for_this_edge_alone_opens_nothing_else(node: Live) -> None:
    key = await node.key("chat", edges=["openai"])
    async with client_of(node, key) as client:
        assert (await complete(client, "echo", user("hi"))).choices
    assert (await node.get("/api/agents", key=key)).told == (403, "edge")


async def test_what_ran_and_failed_is_not_tried_again(node: Live, client: AsyncOpenAI) -> None:
    async with client_of(node, max_retries=2) as eager:
        with pytest.raises(openai.InternalServerError) as caught:
            await complete(eager, "broken", user("hello"))
    assert caught.value.code == "source_failed"
    started = [one for one in await node.events() if one.event_type == "tool_invocation_start"]
    assert len(started) == 1
    with pytest.raises(openai.APIError, match="and fall"):
        await chunks(client, "broken", user("hello"))


async def test_a_completion_costs_as_much_as_a_message_and_says_when_there_is_more(
    tmp_path: Path, demo: Demo
) -> None:
    limits = "[limits]\ncells_per_minute = 6\nburst = 62\n"
    async with served(tmp_path / "home", demo, limits) as node, client_of(node) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="echo", messages=[user("hi")]
        )
        assert raw.headers["RateLimit-Remaining"] == "32"
        with pytest.raises(openai.NotFoundError):
            await complete(client, "nobody", user("hi"))
        for stream in (True, False):
            with pytest.raises(openai.RateLimitError) as caught:
                await complete(client, "echo", user("hi"), stream=stream)
            assert caught.value.code == "rate_limit_exceeded"
            assert int(caught.value.response.headers["Retry-After"]) >= 1


BAD: list[tuple[dict[str, Any], str | None, str]] = [
    ({"model": 1}, "model", "invalid_value"),
    ({"messages": []}, "messages", "invalid_value"),
    ({"messages": [{"role": "robot"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "user"}]}, "messages[0]", "invalid_value"),
    ({"messages": [user(1)]}, "messages[0].content", "invalid_value"),
    ({"messages": [user([{"type": "x"}])]}, "messages[0].content[0].type", "invalid_value"),
    ({"messages": [user([{"type": "text"}])]}, "messages[0].content[0]", "unsupported_content"),
    ({"messages": [user([{"type": "input_audio"}])]}, "messages[0].content[0]",
     "unsupported_content"),
    ({"messages": [user("hi"), assistant("ho")]}, "messages", "invalid_value"),
    ({"messages": [assistant("ho")]}, "messages", "invalid_value"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages", "invalid_value"),
    ({"messages": [user("hi"), calls(call("a")), user("ho")]}, "messages", "invalid_value"),
    ({"messages": [user("hi"), result("a")]}, "messages", "invalid_value"),
    ({"messages": [user("hi"), calls(call("a", "[]")), result("a")]},
     "messages[1].tool_calls[0].function.arguments", "invalid_value"),
    ({"temperature": 3}, "temperature", "invalid_value"),
    ({"max_tokens": 0}, "max_tokens", "invalid_value"),
    ({"stop": ["x"]}, "stop", "unsupported_parameter"),
    ({"logprobs": True}, "logprobs", "unsupported_parameter"),
    ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
    ({"tool_choice": "required"}, "tool_choice", "unsupported_parameter"),
    ({"top_p": 0.5}, "top_p", "unsupported_parameter"),
    ({"functions": [{}]}, "functions", "unsupported_parameter"),
    ({"nonsense": 1}, "nonsense", "unknown_parameter"),
    ({"metadata": {"session": "x" * 201}}, "metadata.session", "invalid_value"),
    ({"context": {"mode": "dreaming"}}, "context.mode", "invalid_value"),
    ({"tools": [{"type": "function"}]}, "tools[0]", "invalid_value"),
    ({"tools": [{"type": "function", "function": {"name": "a"}}] * 2}, "tools[1].function.name",
     "invalid_value"),
    ({"messages": [user("hi"), calls(call("a"), call("a")), result("a")]}, "messages",
     "invalid_value"),
]  # fmt: skip
PICTURES = [
    ("https://example.com/a.png", "remote_file"),
    ("file:///etc/passwd", "invalid_data_url"),
    ("data:image/png,abc", "invalid_data_url"),
    ("data:image/png;base64,a*b", "invalid_base64"),
    ("data:text/html;base64,YQ==", "invalid_image"),
]


async def test_what_is_malformed_is_refused_with_its_place(node: Live) -> None:
    for more, param, code in BAD:
        reply = await node.post(COMPLETIONS, asked(**more))
        assert (more, shape(reply)) == (more, (400, param, code))
    for url, code in PICTURES:
        content = [{"type": "image_url", "image_url": {"url": url}}]
        reply = await node.post(COMPLETIONS, asked(messages=[user(content)]))
        place = "messages[0].content[0].image_url.url"
        assert (url, shape(reply)) == (url, (400, place, code))


async def test_what_changes_nothing_may_be_sent(node: Live) -> None:
    same: dict[str, Any] = {
        "n": 1, "stop": None, "top_p": 1.0, "logprobs": False, "seed": 7, "store": False,
        "presence_penalty": 0, "response_format": {"type": "text"}, "tool_choice": "auto",
        "parallel_tool_calls": True, "service_tier": "auto", "user": "me", "temperature": 0.2,
        "max_completion_tokens": 5, "stream": None, "tools": [],
    }  # fmt: skip
    assert (await node.post(COMPLETIONS, asked(**same))).status == 200


async def test_other_addresses_methods_and_bodies_are_refused_in_the_same_form(
    node: Live,
) -> None:
    assert shape(await node.get("/v1/embeddings")) == (404, None, "route")
    assert shape(await node.get("/v1")) == (404, None, "route")
    assert shape(await node.get("/v1/models/nobody")) == (404, "model", "model_not_found")
    assert shape(await node.get("/v1/models/echo%3Atasks%2Fget"))[0] == 404
    assert shape(await node.post(COMPLETIONS, asked(model="echo:tasks/list")))[0] == 404
    wrong = await node.get(COMPLETIONS)
    assert (shape(wrong), wrong.headers["Allow"]) == ((405, None, "method"), "POST")
    assert shape(await node.get("/v1/models", key=None)) == (401, None, "invalid_api_key")
    assert shape(await node.get("/v1/models", key="of_x")) == (401, None, "invalid_api_key")
    for body, status, code in (
        (b"{", 400, "not_json"),
        (b"[]", 400, "invalid_value"),
        (b'{"model": "a", "model": "b"}', 400, "doubled_key"),
        (b"x" * 10_000_001, 413, "body_too_large"),
    ):
        reply = await node.ask("POST", COMPLETIONS, data=BytesIO(body), headers=JSON_TYPE)
        assert shape(reply) == (status, None, code)
    long = asked(messages=[user("x" * 600_000), assistant("y" * 600_000), user("z")])
    body = BytesIO(json.dumps(long).encode())
    reply = await node.ask("POST", COMPLETIONS, data=body, headers=JSON_TYPE)
    assert shape(reply) == (400, None, "arguments_too_large")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "url", "id", "name", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "developer"]) | JSON},
    optional={
        "content": JSON | st.text(max_size=9),
        "tool_calls": JSON | st.just([call("a")]),
        "tool_call_id": st.just("a") | JSON,
        "name": JSON,
    },
)
BODY = st.fixed_dictionaries(
    {"model": st.just("echo") | JSON, "messages": st.lists(MESSAGE, max_size=4) | JSON},
    optional=dict.fromkeys(
        (
            *("stream", "temperature", "max_tokens", "tools", "metadata", "user", "context"),
            *("stream_options", "stop", "n", "tool_choice", "logit_bias", "x"),
        ),
        JSON,
    ),
)


async def test_no_body_is_answered_with_a_fault_of_ours(tmp_path: Path, demo: Demo) -> None:
    limits = "[limits]\ncells_per_minute = 1000000\nburst = 1000000\n"
    async with served(tmp_path / "home", demo, limits) as node:
        bodies: list[Any] = []

        @given(BODY | JSON)
        @settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], database=None)
        def collect(body: Any) -> None:
            bodies.append(body)

        await anyio.to_thread.run_sync(collect)
        for body in bodies:
            reply = await node.post(COMPLETIONS, body)
            assert (body, reply.status in {200, 400, 403, 404}) == (body, True), reply.body
            if reply.status != 200:
                shape(reply)
