from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.protocols.mcp.framing import (
    MAX_FRAME,
    Broken,
    Frame,
    Framed,
    Framing,
    Oversize,
    Unframer,
    framed,
    one_line,
)

pytestmark = pytest.mark.requirement("C4.2", "C4.3")

CHUNK = 65_536
BOM = b"\xef\xbb\xbf"
LINE, LENGTH = Framing.LINE, Framing.LENGTH


def read(data: bytes, *, limit: int = MAX_FRAME, chunk: int = CHUNK) -> list[Framed]:
    unframer = Unframer(limit)
    parts = (data[at : at + chunk] for at in range(0, len(data), chunk))
    return [found for part in parts for found in unframer.feed(part)] + unframer.end()


def counted(body: bytes, name: bytes = b"Content-Length") -> bytes:
    return name + b": " + str(len(body)).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("chunk", [1, 2, 7, CHUNK])
def test_each_message_says_for_itself_how_it_is_framed(chunk: int) -> None:
    stream = b'{"a":1}\n' + counted(b'{"b":\n2}') + b'{"c":3}\r\n\r\n\n' + counted(b"[4]") + b"[5]"
    assert read(stream, chunk=chunk) == [
        Frame(b'{"a":1}', LINE),
        Frame(b'{"b":\n2}', LENGTH),
        Frame(b'{"c":3}', LINE),
        Frame(b"[4]", LENGTH),
        Frame(b"[5]", LINE),
    ]


@pytest.mark.parametrize("chunk", [1, CHUNK])
def test_a_byte_order_mark_and_blank_lines_are_no_messages(chunk: int) -> None:
    stream = BOM + b"\r\n \t\n" + b'{"a":1}\n' + BOM + counted(b"{}") + b"\n\n" + BOM + b"[]\n \n"
    found = read(stream, chunk=chunk)
    assert found == [Frame(b'{"a":1}', LINE), Frame(b"{}", LENGTH), Frame(b"[]", LINE)]


@pytest.mark.parametrize("name", [b"content-length", b"CONTENT-LENGTH", b"Content-Length "])
def test_a_head_is_known_by_any_spelling_and_may_say_more(name: bytes) -> None:
    more = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
    assert read(more + counted(b"{}", name)) == [Frame(b"{}", LENGTH)]
    assert read(counted(b"{}", name).replace(b"\r\n\r\n", b"\r\n" + more + b"\r\n")) == [
        Frame(b"{}", LENGTH)
    ]
    assert read(counted(b"{}", name).replace(b"\r\n", b"\n")) == [Frame(b"{}", LENGTH)]


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: five\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Type: text/plain\r\n\r\n",
        b"Content-Length 12\r\n\r\n",
        b"Content-Length: 5\r\n",
        b"content-" * 2000 + b"\r\n\r\n",
    ],
)
@pytest.mark.parametrize("chunk", [1, CHUNK])
def test_after_a_head_that_cannot_be_believed_the_next_message_is_read(
    head: bytes, chunk: int
) -> None:
    *before, last = read(head + b'{"a":1}\n', chunk=chunk)
    assert last == Frame(b'{"a":1}', LINE)
    assert before
    assert all(isinstance(one, Broken) for one in before)


@pytest.mark.parametrize(
    "rest", [b"Content-Length: 5\r\n\r\n{}", b"Content-Length: 5", b"Content-"]
)
def test_an_end_inside_of_a_message_is_told(rest: bytes) -> None:
    assert [type(one) for one in read(rest)] == [Broken]


def test_a_beginning_that_only_looks_like_a_head_is_a_line() -> None:
    assert read(b"cont\n{}\n") == [Frame(b"cont", LINE), Frame(b"{}", LINE)]
    assert read(b"con") == [Frame(b"con", LINE)]


def message(size: int, **fields: Any) -> bytes:
    """A message of so many bytes, whose `params` are what fills it."""
    empty = json.dumps({**fields, "params": {"pad": ""}})
    return json.dumps({**fields, "params": {"pad": "x" * (size - len(empty))}}).encode()


@pytest.mark.parametrize("framing", [LINE, LENGTH])
@pytest.mark.parametrize("chunk", [CHUNK, 1 << 24])
def test_a_message_of_ten_megabytes_is_read_and_one_byte_more_is_not(
    framing: Framing, chunk: int
) -> None:
    most = message(MAX_FRAME, jsonrpc="2.0", id=7, method="tools/call")
    more = message(MAX_FRAME + 1, jsonrpc="2.0", id=8, method="tools/call")
    stream = framed(most, framing) + framed(more, framing) + b"{}\n"
    whole, dropped, after = read(stream, chunk=chunk)
    assert whole == Frame(most, framing)
    assert dropped == Oversize(framing, 8)
    assert after == Frame(b"{}", LINE)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_a_long_line_is_measured_without_its_end(ending: bytes) -> None:
    assert read(b"x" * 100 + ending, limit=100) == [Frame(b"x" * 100, LINE)]
    assert read(b"x" * 101 + ending, limit=100) == [Oversize(LINE)]


@pytest.mark.parametrize("number", [0, 17, -3, "a-1", "é"])
@pytest.mark.parametrize("chunk", [100, 1 << 24])
def test_the_id_of_a_message_that_is_too_long_is_found_at_either_end(
    number: int | str, chunk: int
) -> None:
    pad = {"params": {"pad": "x" * 5000, "id": "of another", "deep": {"id": 99}}}
    ways: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", **pad},
        {"method": "tools/call", "jsonrpc": "2.0", "id": number, **pad},
        {"method": "tools/call", **pad, "jsonrpc": "2.0", "id": number},
        {**pad, "id": number, "jsonrpc": "2.0"},
    ]
    for way in ways:
        body = json.dumps(way, ensure_ascii=False).encode()
        for framing in Framing:
            found = read(framed(body, framing), limit=4000, chunk=chunk)
            assert found == [Oversize(framing, number)]


@pytest.mark.parametrize(
    "way",
    [
        {"jsonrpc": "2.0", "method": "m", "params": {"pad": "x" * 5000, "deep": {"id": 99}}},
        {"params": {"pad": "x" * 5000, "id": 99}},
        {"params": "x" * 5000 + '","id":99}'},
        {"id": True, "params": "x" * 5000},
    ],
)
def test_an_id_that_is_not_the_messages_own_is_not_taken_for_it(way: dict[str, Any]) -> None:
    assert read(json.dumps(way).encode() + b"\n", limit=4000) == [Oversize(LINE)]


def test_what_is_too_long_is_not_kept() -> None:
    unframer = Unframer(1000)
    for _ in range(1000):
        assert unframer.feed(b"x" * CHUNK) == []
        assert len(unframer._data) <= CHUNK
    assert unframer.feed(b"\n{}\n") == [Oversize(LINE), Frame(b"{}", LINE)]


def test_many_short_messages_cost_no_more_each_than_a_few() -> None:
    spent: list[float] = []
    for count in (2_000, 20_000):
        stream = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * count
        began = time.process_time()
        assert len(read(stream)) == count
        spent.append((time.process_time() - began) / count)
    few, many = spent
    assert many < 5 * few


def test_a_long_message_in_small_pieces_costs_its_length() -> None:
    spent: list[float] = []
    for size in (200_000, 2_000_000):
        began = time.process_time()
        assert len(read(b"x" * size + b"\n", chunk=512)) == 1
        spent.append((time.process_time() - began) / size)
    few, many = spent
    assert many < 5 * few


@given(
    messages=st.lists(
        st.tuples(
            st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=4),
            st.sampled_from(Framing),
            st.booleans(),
        ),
        max_size=8,
    ),
    cuts=st.lists(st.integers(0, 2000), max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_however_it_is_cut_the_same_messages_come_out(
    messages: list[tuple[dict[str, str], Framing, bool]], cuts: list[int]
) -> None:
    bodies = [
        (json.dumps(value, indent=2 if pretty and framing is LENGTH else None).encode(), framing)
        for value, framing, pretty in messages
    ]
    stream = b"".join(framed(body, framing) for body, framing in bodies)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    unframer = Unframer()
    found = [one for a, b in pairwise(places) for one in unframer.feed(stream[a:b])]
    assert found + unframer.end() == [Frame(body, framing) for body, framing in bodies]


@given(stream=st.binary(max_size=400), cut=st.integers(0, 400))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_ends_and_the_next_line_is_read(stream: bytes, cut: int) -> None:
    unframer = Unframer(50)
    unframer.feed(stream[:cut])
    unframer.feed(stream[cut:])
    unframer.end()
    assert read(stream + b"\n\n\n", limit=50, chunk=1) == read(stream + b"\n\n\n", limit=50)


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
@settings(max_examples=100, deadline=None)
def test_json_of_many_lines_says_the_same_on_one(value: Any) -> None:
    body = json.dumps(value, indent=1).encode()
    assert b"\n" not in one_line(body)
    assert json.loads(one_line(body)) == value
