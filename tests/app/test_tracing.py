"""Calls as spans, sent to a real receiver and read by OpenTelemetry's own messages (C14.3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from tests.app.a2a.pushing import receiving
from tests.edges.api.test_server_changes import RAISED, server, settled
from tests.edges.live import live

from openfang.app.tracing.following import Following
from openfang.app.tracing.spans import SERVER, Scribe
from openfang.core.calls import Call, Caller
from openfang.core.ids import Kind
from openfang.core.results import Outcome
from openfang.core.tools import Tool
from openfang.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.app.a2a.pushing import Receiver
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C14.3")

TRACE, PEER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FROM_PEER = {"traceparent": f"00-{TRACE}-{PEER}-01"}
AGENT = 'name = "clock"\ndescription = "Tells the time."\n[capabilities]\ntools = ["system_time"]\n'


def configured(receiver: Receiver, more: str = "allow_private = true") -> str:
    return f'[telemetry]\nendpoint = "{receiver.url("")}"\ninterval_secs = 0.05\n{more}\n'


def bodies(receiver: Receiver, path: str) -> Iterable[dict[str, Any]]:
    for taken in receiver.taken:
        if taken.path == path:
            assert taken.headers["content-encoding"] == "gzip"
            yield json.loads(taken.body)  # which the receiver has unpacked


def spans(receiver: Receiver) -> list[dict[str, Any]]:
    """Those that arrived, each with its attributes as a table; OpenTelemetry can read them all."""
    found: list[dict[str, Any]] = []
    for body in bodies(receiver, "/v1/traces"):
        ParseDict(body, TracesData())
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                found += ({**one, "said": said(one["attributes"])} for one in scope["spans"])
    return found


def said(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in attributes}


async def told(receiver: Receiver, count: int) -> list[dict[str, Any]]:
    with anyio.fail_after(20):
        while len(spans(receiver)) < count:
            await receiver.times(len(receiver.taken) + 1)
    return spans(receiver)


async def test_a_call_is_one_span_between_the_peer_and_the_upstream(tmp_path: Path) -> None:
    async with receiving() as receiver:
        config = RAISED + server("it") + configured(receiver)
        async with live(tmp_path / "home", config=config) as node:
            await settled(node)
            reply = await node.call("mcp:it:get_note", {"errand": "heard"}, headers=FROM_PEER)
            assert reply.status == 200, reply.body
            (span,) = [one for one in await told(receiver, 1) if one["said"]]
        heard = reply.json["content"][0]["text"][::-1]
    assert (span["traceId"], span["parentSpanId"], span["kind"]) == (TRACE, PEER, SERVER)
    assert f"00-{TRACE}-{span['spanId']}-01" in heard
    assert span["name"] == "execute_tool get_note"
    assert int(span["endTimeUnixNano"]) > int(span["startTimeUnixNano"]) > 1e18
    words = span["said"]
    assert words["gen_ai.operation.name"] == "execute_tool"
    assert words["gen_ai.tool.name"] == "get_note"
    assert words["mcp.method.name"] == "tools/call"
    assert words["gen_ai.tool.call.id"] == reply.json["call_id"]
    gates = {name: word for name, word in words.items() if name.startswith("openfang.gate.")}
    assert {"openfang.gate.mode", "openfang.gate.grants"} < gates.keys()
    assert {*gates.values()} == {"allow"}


async def test_an_agents_thoughts_and_calls_hang_under_it(tmp_path: Path) -> None:
    agent = tmp_path / "home" / "agents" / "clock" / "agent.toml"
    agent.parent.mkdir(parents=True)
    agent.write_text(AGENT)
    async with (
        receiving() as receiver,
        live(tmp_path / "home", config=configured(receiver)) as node,
    ):
        message = {"message": "What time is it?"}
        reply = await node.call("agent:clock", message, headers=FROM_PEER)
        assert reply.status == 200, reply.body
        found = {one["name"]: one for one in await told(receiver, 3)}
    whole = found["invoke_agent clock"]
    assert whole["parentSpanId"] == PEER
    thought = next(one for name, one in found.items() if name.startswith("chat "))
    called = found["execute_tool system_time"]
    for one in (thought, called):
        assert (one["traceId"], one["parentSpanId"]) == (TRACE, whole["spanId"])
    assert thought["said"]["gen_ai.operation.name"] == "chat"


async def test_a_refusal_is_a_span_with_the_rule_and_its_reason(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        live(tmp_path / "home", config=configured(receiver)) as node,
    ):
        planning, command = {"mode": "planning"}, {"command": "ls my-own-folder"}
        refused = await node.call("shell_exec", command, context=planning)
        assert refused.status == 403, refused.body
        (span,) = await told(receiver, 1)
    assert span["status"]["code"] == 2
    assert span["said"]["error.type"] == refused.problem["rule"]
    assert span["status"]["message"] == refused.problem["detail"]
    assert b"my-own-folder" not in b"".join(taken.body for taken in receiver.taken)


async def test_what_is_counted_is_sent_with_the_headers_that_are_configured(tmp_path: Path) -> None:
    more = 'allow_private = true\ntraces = false\nheaders = { "X-Scope" = "us" }'
    async with (
        receiving() as receiver,
        live(tmp_path / "home", config=configured(receiver, more)) as node,
    ):
        assert (await node.call("system_time")).status == 200
        await receiver.times(len(receiver.taken) + 2)
        assert node.app.parts.pipeline.tracer is None
    *_, body = bodies(receiver, "/v1/metrics")
    ParseDict(body, MetricsData())
    assert {taken.path for taken in receiver.taken} == {"/v1/metrics"}
    assert receiver.taken[-1].headers["x-scope"] == "us"
    metrics = {one["name"]: one for one in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}
    (point,) = metrics["gen_ai.execute_tool.duration"]["histogram"]["dataPoints"]
    assert said(point["attributes"]) == {"gen_ai.tool.name": "builtin:system_time"}
    assert point["count"] == "1"
    assert len(point["bucketCounts"]) == len(point["explicitBounds"]) + 1


async def test_a_private_address_is_a_collector_only_if_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        receiving() as receiver,
        live(tmp_path / "home", config=configured(receiver, "metrics = true")) as node,
    ):
        assert (await node.call("system_time")).status == 200
        with anyio.fail_after(20):
            while "Telemetry does not reach 127.0.0.1" not in caplog.text:
                await anyio.lowlevel.checkpoint()
        assert (await node.call("system_time")).status == 200
    assert receiver.taken == []


async def test_a_collector_that_is_named_later_is_told_from_then_on(tmp_path: Path) -> None:
    async with receiving() as receiver, live(tmp_path / "home") as node:
        assert (await node.call("system_time")).status == 200
        await _configure(node, configured(receiver, "allow_private = true\nmetrics = false"))
        with anyio.fail_after(20):
            while node.app.parts.pipeline.tracer is None:
                await anyio.lowlevel.checkpoint()
        assert (await node.call("system_time", headers=FROM_PEER)).status == 200
        (span,) = await told(receiver, 1)
    assert span["traceId"] == TRACE
    assert {taken.path for taken in receiver.taken} == {"/v1/traces"}


async def _configure(node: Live, text: str) -> None:
    (node.app.parts.home.path / "config.toml").write_text(text)
    assert (await node.post("/api/config/reload")).status == 200


def _call(trace: str = TRACE) -> Call:
    call = Call(tool="x", caller=Caller(id="key:me"))
    call.chain.trace_id = trace  # type: ignore[misc]
    return call


TOOL = Tool(id="builtin:x", kind=Kind.BUILTIN, source="builtin", name="x")


def test_a_sample_takes_whole_traces_and_always_the_same_ones() -> None:
    half = Following(ManualClock(), sample=0.5)
    few, many = f"{0:024x}{1:08x}", f"{0:024x}{(1 << 32) - 1:08x}"
    for trace in (few, many, few):
        half.followed(_call(trace), TOOL, (), 1, Outcome.OK)
    assert [span.trace for span in half.taken()] == [few, few]
    none = Following(ManualClock(), sample=0.0)
    none.followed(_call(few), TOOL, (), 1, Outcome.OK)
    assert none.taken() == []


def test_what_nobody_fetches_is_dropped_and_counted() -> None:
    following = Following(ManualClock(), most=2)
    for _ in range(5):
        following.followed(_call(), TOOL, (), 1, Outcome.TIMEOUT)
    assert following.dropped == 3
    written = json.loads(Scribe("node").traces(following.taken()))
    found = written["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [said(one["attributes"])["error.type"] for one in found] == ["timeout"] * 2
