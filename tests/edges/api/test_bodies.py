"""Bodies are bounded, plain, strict JSON; queries are strict too."""

from __future__ import annotations

import gzip
import json
import zlib
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from openfang.edges.api.exchange import MAX_BODY, USUAL_BODY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.edges.demo import Demo
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C12.2")

ECHO = "/api/tools/mcp:demo:echo/call"
JSON_TYPE = {"Content-Type": "application/json"}


def body_of(size: int) -> bytes:
    """A call whose body has exactly so many bytes."""
    frame = b'{"arguments":{"text":""}}'
    return frame.replace(b'""', b'"%s"' % (b"x" * (size - len(frame))))


async def post(node: Live, body: bytes, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await node.ask("POST", ECHO, data=body, headers=JSON_TYPE | named)


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 1_000_000):
        yield body[start : start + 1_000_000]


@pytest.mark.requirement("C7.5")
async def test_a_whole_message_has_10_mb_and_its_arguments_1_mib(node: Live, demo: Demo) -> None:
    assert MAX_BODY == 10_000_000
    for size, told in {
        1_000_000: None,
        2_000_000: (422, "arguments_too_large"),
        MAX_BODY: (422, "arguments_too_large"),
        MAX_BODY + 1: (413, "body_too_large"),
    }.items():
        body = body_of(size)
        assert len(body) == size
        reply = await node.ask("POST", ECHO, data=BytesIO(body), headers=JSON_TYPE)
        assert (size, reply.status if told is None else reply.told) == (size, told or 200)
    small = in_chunks(body_of(1_000_000))
    assert (await node.ask("POST", ECHO, data=small, headers=JSON_TYPE)).status == 200
    assert demo.source.reached == 2


async def test_what_manages_the_node_takes_no_more_than_it_needs(node: Live) -> None:
    """A body of many members holds up everybody while it is judged, whoever sent it."""
    wide = json.dumps({f"member-{number}": 0 for number in range(60_000)}).encode()
    assert USUAL_BODY < len(wide) < MAX_BODY
    for path in ("/api/a2a/tasks/none/cancel", "/api/keys", "/api/mcp/servers/refresh"):
        reply = await node.ask("POST", path, data=BytesIO(wide), headers=JSON_TYPE)
        assert (path, reply.told) == (path, (413, "body_too_large"))
        assert str(USUAL_BODY) in reply.problem["detail"]
    plan = BytesIO(json.dumps({"name": "plan", "content": "x" * (2 * USUAL_BODY)}).encode())
    made = await node.ask("POST", "/api/specs", data=plan, headers=JSON_TYPE)
    assert made.status == 201


async def test_a_length_that_is_too_large_is_refused_before_anything_is_sent(node: Live) -> None:
    client = await node.client()
    head = node.request("POST", ECHO, f"Content-Length: {MAX_BODY + 1}")
    reply = await client.ask(head)
    assert (reply.status, reply.problem["rule"]) == (413, "body_too_large")


async def test_chunks_without_end_are_cut_off_at_the_limit(node: Live) -> None:
    client = await node.client()
    await client.send(node.request("POST", ECHO, "Transfer-Encoding: chunked"))
    chunk = b"%x\r\n%b\r\n" % (1_000_000, b"x" * 1_000_000)
    for _ in range(2):
        await client.send(chunk)
    reply = await client.answer()
    assert (reply.status, reply.problem["rule"]) == (422, "arguments_too_large")


async def test_a_body_where_none_is_taken_is_bounded_too(node: Live) -> None:
    for method, path in (("GET", "/api/health"), ("GET", "/api/tools"), ("DELETE", "/api/keys/x")):
        reply = await node.ask(method, path, data=BytesIO(b"x" * (MAX_BODY + 1)))
        assert reply.told == (413, "body_too_large")


async def test_what_is_packed_is_never_unpacked(node: Live, demo: Demo) -> None:
    packed = gzip.compress(b'{"arguments":{}}')
    for kind in ("gzip", "deflate", "br", "zstd", "GZIP", "gzip, identity", "x-gzip", ""):
        reply = await post(node, packed, Content_Encoding=kind)
        assert (kind, reply.told) == (kind, (415, "content_encoding"))
    small_bomb = zlib.compress(b"0" * 50_000_000, 1)
    assert (await post(node, small_bomb, Content_Encoding="deflate")).status == 415
    assert (await post(node, packed)).told == (400, "not_json")
    assert demo.source.reached == 0
    assert (await post(node, b'{"arguments":{}}', Content_Encoding="identity")).status == 200


KINDS = {
    "text/plain": 415,
    "application/x-www-form-urlencoded": 415,
    "multipart/form-data; boundary=x": 415,
    "application/jsonp": 415,
    "application/json-patch+json": 415,
    "application/xml": 415,
    "*/*": 415,
    "json": 415,
    "application/json": 200,
    "Application/JSON": 200,
    "application/json; charset=utf-8": 200,
}


async def test_a_body_of_another_kind_is_refused(node: Live, demo: Demo) -> None:
    for kind, status in KINDS.items():
        reply = await node.ask("POST", ECHO, data=b"{}", headers={"Content-Type": kind})
        assert (kind, reply.status) == (kind, status)
        assert status == 200 or reply.problem["rule"] == "content_type"
    assert demo.source.reached == 3


async def test_an_empty_body_is_an_empty_object(node: Live) -> None:
    client = await node.client()
    assert (await client.ask(node.request("POST", ECHO, "Content-Length: 0"))).status == 200
    assert (await client.ask(node.request("POST", "/api/config/reload"))).status == 200
    reply = await client.ask(node.request("POST", "/api/specs", "Content-Length: 0"))
    assert (reply.status, reply.problem["rule"]) == (422, "body")


NO_JSON = [
    b"{",
    b"{}}",
    b"{} {}",
    b"nonsense",
    b"{'arguments': {}}",
    b'{"arguments": {},}',
    b'{"arguments": {"text": NaN}}',
    b'{"arguments": {"text": Infinity}}',
    b'{"arguments": {"text": 01}}',
    b'{"arguments": {"text": "\x00"}}',
    b'{"arguments": {"text": "\xff"}}',
    b'{"arguments": {"text": "\xed\xa0\x80"}}',
    b'{"arguments": {"text": "\\ud800"}}',
    b'{"arguments": {"text": "\\udc00\\ud800"}}',
    b'\xef\xbb\xbf{"arguments": {}}',
    '{"arguments": {}}'.encode("utf-16"),
    b"[" * 100_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
]


async def test_what_is_no_strict_json_is_400(node: Live, demo: Demo) -> None:
    for text in NO_JSON:
        assert (text, (await post(node, text)).told) == (text, (400, "not_json"))
    assert demo.source.reached == 0


@pytest.mark.requirement("C7.5")
async def test_integers_beyond_64_bits_are_refused_rather_than_rounded(
    node: Live, demo: Demo
) -> None:
    for number in (2**64, -(2**63) - 1, 10**40):
        body = json.dumps({"arguments": {"text": number}}).encode()
        assert (await post(node, body)).told == (400, "long_integer")
    assert demo.source.reached == 0
    for number in (2**64 - 1, -(2**63), 10**40 / 3, str(2**70)):
        reply = await post(node, json.dumps({"arguments": {"text": number}}).encode())
        assert reply.json["content"][0]["text"] == str(number)


@pytest.mark.requirement("C7.5")
async def test_deep_json_is_refused_and_nothing_breaks(node: Live) -> None:
    for depth in (60, 70, 200, 300, 600, 1_000):
        deep = b"[" * depth + b"]" * depth
        reply = await post(node, b'{"arguments":{"text":' + deep + b"}}")
        assert (depth, reply.status) == (depth, 200 if depth < 64 else 422)
        for body in (deep, b'{"context":' + deep + b"}", b'{"more":' + deep + b"}"):
            assert (await post(node, body)).told == (422, "body")


DOUBLED = [
    b'{"arguments":{"text":"a"},"arguments":{"text":"b"}}',
    b'{"arguments":{"text":"a"},"\\u0061rguments":{"text":"b"}}',
    b'{"context":{"mode":"planning","mode":"execution"}}',
    b'{"context":{"mode":"planning"},"context":{}}',
    b'{"arguments":{"text":"\\u003a\\u003A","text":"b"}}',
]
ONCE = [
    b'{"arguments":{"text":"arguments: arguments"},"context":{"mode":"execution"}}',
    b'{"arguments":{"text":"a\\u003ab"}}',
    b'{"arguments":{"text":"a","more":[{"text":"b"},{"text":"b"}]}}',
]


async def test_a_key_that_comes_twice_is_refused(node: Live) -> None:
    for body in DOUBLED:
        assert (body, (await post(node, body)).told) == (body, (400, "doubled_key"))
    for body in ONCE:
        assert (body, (await post(node, body)).status) == (body, 200)


QUERIES = [
    "all=true&all=true",
    "all=true&all=false",
    "all=",
    "all=1",
    "all=TRUE",
    "all",
    "unknown=1",
    "risk=high",
    "risk=",
    "tag=no.such_tag",
    "source=%FF",
    "risk=HIGH%00",
    "=",
    "&".join(f"a{number}=1" for number in range(60)),
]


async def test_a_query_is_read_strictly(node: Live) -> None:
    for query in QUERIES:
        told = (await node.get(f"/api/tools?{query}")).told
        assert (query, told) == (query, (400, "query"))


SEARCHES = [
    "limit=0", "limit=10001", "limit=1.0", "limit=1e2", "limit=-1", "limit=%2B1", "limit=%D9%A1",
    "after=-1", "after=99999999999999999999", "level=debug", "text=", f"text={'x' * 201}",
]  # fmt: skip


async def test_numbers_and_words_of_a_query_have_bounds(node: Live) -> None:
    for query in SEARCHES:
        told = (await node.get(f"/api/audit?{query}")).told
        assert (query, told) == (query, (400, "query"))


async def test_a_query_where_none_is_taken_is_refused(node: Live) -> None:
    for path in ("/api/health?x=1", "/api/version?x", "/api/keys?all=true"):
        assert (await node.get(path)).told == (400, "query")
    assert (await node.get("/api/version?")).status == 200
