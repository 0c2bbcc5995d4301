"""Events are the same however their bytes are cut."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.protocols.mcp.sse import Event, EventReader, EventTooLarge

pytestmark = pytest.mark.requirement("C3.1")

STREAM = (
    "\ufeff: a comment\n\ndata: one\n\n"
    "event: endpoint\r\ndata:/post\r\nid: 7\r\nretry: 1500\r\n\r\n"
    "data: a\rdata:  b\rdata\r\r"
    "id\ndata: {}\n\n"
    "event: lonely\n\nunknown: field\ndata: é\n\nid: 9\ndata: cut off"
).encode()
EVENTS = [
    Event("message", b"one", ""),
    Event("endpoint", b"/post", "7"),
    Event("message", b"a\n b\n", "7"),
    Event("message", b"{}", ""),
    Event("message", "é".encode(), ""),
]


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@settings(max_examples=150)
@given(st.lists(st.integers(0, 1000), max_size=12))
def test_events_do_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    reader = EventReader()
    found = [event for piece in pieces(STREAM, cuts) for event in reader.feed(piece)]
    assert found == EVENTS
    assert reader.retry == 1.5
    assert reader.last_id == "9"


def test_byte_by_byte() -> None:
    reader = EventReader()
    assert [e for byte in STREAM for e in reader.feed(bytes([byte]))] == EVENTS


@settings(max_examples=150)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_any_bytes_are_read_and_the_cuts_never_matter(data: bytes, cuts: list[int]) -> None:
    whole, cut = EventReader(), EventReader()
    assert whole.feed(data) == [e for piece in pieces(data, cuts) for e in cut.feed(piece)]


LINES = st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data:x", b"data", b":c", b"id:1", b"x"]))


@settings(max_examples=300)
@given(LINES, st.lists(st.integers(0, 300), max_size=6))
def test_runs_of_empty_lines_say_no_more_than_one(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    single, cut = EventReader(), EventReader()
    one_by_one = [e for byte in data for e in single.feed(bytes([byte]))]
    assert [e for piece in pieces(data, cuts) for e in cut.feed(piece)] == one_by_one


def test_megabytes_of_empty_lines_take_no_time() -> None:
    began = time.process_time()
    assert EventReader().feed(b"\n" * 20_000_000 + b"data: x\n\n") == [Event("message", b"x", "")]
    assert time.process_time() - began < 5


def test_bad_ids_and_pauses_are_passed_over() -> None:
    reader = EventReader()
    reader.feed(b"id: a\nid: b\0c\nretry: -1\nretry: x\nretry: 99999999999\ndata: x\n\n")
    assert (reader.last_id, reader.retry) == ("a", None)


def test_a_reader_that_goes_on_knows_the_place_and_the_pause() -> None:
    reader = EventReader()
    reader.feed(b"id: 3\nretry: 20\ndata: half")
    again = reader.again()
    assert (again.last_id, again.retry) == ("3", 0.02)
    assert again.feed(b"data: x\n\n") == [Event("message", b"x", "3")]


@pytest.mark.parametrize("part", [b"x" * 64, b"data: xxxxxxxxxxxxxxxxxx\n"])
def test_an_event_over_the_limit_is_refused_in_one_line_or_in_many(part: bytes) -> None:
    reader = EventReader(1000)
    with pytest.raises(EventTooLarge):
        [reader.feed(part) for _ in range(100)]


def test_a_limit_is_for_one_event() -> None:
    reader = EventReader(1000)
    assert sum(len(reader.feed(b"data: " + b"x" * 900 + b"\n\n")) for _ in range(50)) == 50


@pytest.mark.parametrize("piece", [b"\r" * 65536, b"data: " + b"x" * 65530])
def test_many_bytes_cost_their_number(piece: bytes) -> None:
    reader = EventReader()
    began = time.process_time()
    for _ in range(16):
        reader.feed(piece)
    assert time.process_time() - began < 5
