"""Streams of events by themselves: what is kept, what is spared, and who reads them."""

from __future__ import annotations

import json
from functools import partial

import anyio
import pytest

from openfang.edges.mcp.context import Talk
from openfang.edges.mcp.elsewhere import Known
from openfang.edges.mcp.events import KEEP_ALIVE, MOST, MOST_BYTES, Events, Seen, read_event_id
from openfang.edges.mcp.ports import Place
from openfang.edges.mcp.session import Session
from openfang.edges.mcp.sessions import Sessions
from openfang.testing import ManualClock

pytestmark = pytest.mark.requirement("C4.4")


async def written(events: Events, after: int = 0) -> bytes:
    """All that a reader gets of a stream that has ended."""
    pieces: list[bytes] = []

    async def write(piece: bytes) -> None:
        pieces.append(piece)

    events.end()
    await events.send(write, after=after, beat=10)
    return b"".join(piece for piece in pieces if piece != KEEP_ALIVE)


async def test_a_named_stream_can_be_read_again_from_any_event() -> None:
    events = Events("7")
    events.prime()
    for word in (b"a", b"b"):
        events.put(word)
    whole = await written(events)
    assert whole == (
        b"id: 7-1\nretry: 1000\ndata: \n\n"
        b"id: 7-2\nevent: message\ndata: a\n\n"
        b"id: 7-3\nevent: message\ndata: b\n\n"
    )
    assert await written(events, 2) == b"id: 7-3\nevent: message\ndata: b\n\n"
    assert await written(events) == whole


async def test_a_stream_without_a_name_keeps_nothing() -> None:
    events = Events()
    events.put(b"a")
    assert await written(events) == b"event: message\ndata: a\n\n"
    assert (events.count, events.size) == (0, 0)
    assert await written(events) == b""


def test_of_too_many_the_oldest_notices_go() -> None:
    events = Events("1")
    events.put(b"a question")
    for _ in range(MOST + 50):
        events.put(b"a notice", notice=True)
    assert events.count == MOST
    events.put(b"x" * MOST_BYTES)
    assert events.count == 2  # what is not sent yet and no notice, and what is newest
    events.put(b"x" * MOST_BYTES)
    assert events.count == 3


async def test_what_was_sent_goes_when_there_is_too_much() -> None:
    events = Events("1")
    for _ in range(3):
        events.put(b"x" * MOST_BYTES)
    assert events.count == 3
    await written(events)
    events.put(b"y")
    assert (events.count, events.size < MOST_BYTES) == (1, True)


async def test_whoever_reads_last_has_it_alone() -> None:
    events, first, second = Events("1"), list[bytes](), list[bytes]()

    async def write(pieces: list[bytes], piece: bytes) -> None:
        pieces.append(piece)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(events.send, partial(write, first), beat=10))
            await anyio.wait_all_tasks_blocked()
            group.start_soon(partial(events.send, partial(write, second), beat=10))
            await anyio.wait_all_tasks_blocked()
            events.put(b"a")
            await anyio.wait_all_tasks_blocked()
            events.leave()
    assert first == [KEEP_ALIVE]
    assert second == [KEEP_ALIVE, b"id: 1-1\nevent: message\ndata: a\n\n"]


@pytest.mark.parametrize("text", ["", "1", "1-", "-1", "a-1", "1-1-1", "1-" + "1" * 19, " 1-1"])
def test_what_we_never_wrote_is_no_event(text: str) -> None:
    assert read_event_id(text) is None


@pytest.mark.parametrize("ids", [[1], ["a"], [1, "ä"], ["-"], ["x" * 200]])
async def test_an_event_says_which_requests_its_stream_is_for(ids: list[int | str]) -> None:
    events = Events("7", ids, last=5)
    assert not events.unread
    events.put(b"a")
    assert events.unread
    said = (await written(events)).partition(b"\n")[0].removeprefix(b"id: ").decode()
    assert read_event_id(said) == Seen("7", 6, ids)


async def test_requests_with_names_of_great_length_are_not_in_the_id() -> None:
    events = Events("7", ["x" * 1000])
    events.put(b"a")
    assert (await written(events)).startswith(b"id: 7-1\n")


async def test_who_waits_on_a_stream_that_nobody_knows_is_told_that_no_answer_comes() -> None:
    known = Known(id="s", caller="c", place=Place(), talk=Talk(), generation=1)
    session = Session(known, lambda: True)
    before = Events("3", [7])
    before.put(b"a")
    said = (await written(before)).partition(b"\n")[0].removeprefix(b"id: ").decode()
    found = session.after(said)
    assert found
    told = json.loads((await written(found[0])).partition(b"data: ")[2])
    assert (told["id"], "may have had an effect" in told["error"]["message"]) == (7, True)
    assert session.after("3-1") is None
    later = session.stream([8])
    assert int(later.name) > 1 << 32


def ended(events: Events, size: int) -> Events:
    events.put(b"x" * size)
    events.sent = 10
    events.end()
    return events


def test_a_session_keeps_a_megabyte_of_what_has_ended_and_all_of_them_together_little() -> None:
    sessions = Sessions(ManualClock())
    kept = [sessions.open(f"key:{n}", Place(), Talk()) for n in range(100)]
    for session in kept:
        for _ in range(3):
            sessions.retire(session, ended(session.stream(), 400_000))
        assert 800_000 <= session.kept <= 900_000
    assert sum(session.kept for session in kept) <= 64_000_000
    assert kept[0].kept == 0
    assert kept[-1].kept > 0
    for session in kept:
        sessions.end(session)
    assert sum(session.kept for session in kept) == 0


def test_a_stream_of_a_session_that_is_over_is_not_kept() -> None:
    sessions = Sessions(ManualClock())
    session = sessions.open("key:a", Place(), Talk())
    events = session.stream()
    sessions.end(session)
    sessions.retire(session, ended(events, 100))
    assert session.kept == 0
