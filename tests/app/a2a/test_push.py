"""Push notifications: each change told at least once, in order, on record, and to nobody inside."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from aiohttp import web
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st
from tests.app.a2a.pushing import House, Receiver, pushing, receiving, running, says, sign, write

from openfang.app.a2a.notices import Notice, as_of, notice_body
from openfang.core.errors import AuditUnavailable, NotFound, Rejected
from openfang.core.tasks import Moved, Push, Role, Task, TaskArtifact, TaskState
from openfang.storage import tasks
from openfang.storage.pushes import MOST_PUSHES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from openfang.app.timers import Timers

pytestmark = pytest.mark.requirement("C5.3")
DAY = 24 * 3600
PAYLOAD = ("task", "push", "host", "n", "state", "tries", "reason")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with pushing(tmp_path) as made:
        yield made


def to(receiver: Receiver, task: str = "", name: str = "mine", **more: str) -> Push:
    return Push(id=name, task=task, url=receiver.url("/hook?a=b"), **more)


async def test_each_change_is_told_whole_in_order_and_on_record(house: House) -> None:
    loop = house.loop()
    async with receiving() as receiver, running(loop.run):
        task = await house.begin(
            to(receiver, token="t0ken", scheme="Bearer", credentials="cr3dential")
        )
        asked = await house.move(task, TaskState.INPUT_REQUIRED, "which one?")
        await house.move(asked, TaskState.CANCELED, "enough")
        await house.told()
    first, second, third = receiver.taken
    assert first.path == "/hook?a=b"
    assert first.headers["content-type"] == "application/a2a+json"
    assert first.headers["x-a2a-notification-token"] == "t0ken"
    assert first.headers["authorization"] == "Bearer cr3dential"
    signature = sign(first.body, f"http://127.0.0.1:{receiver.port}")
    assert first.headers["x-a2a-notification-signature"] == signature
    assert first.body == (
        b'{"id":"%b","state":"working","dialect":"1.0","said":["hello"],"n":2,"status":null}'
        % task.id.encode()
    )
    assert b'"said":["hello"],"n":3,"status":"which one?"' in second.body
    assert b'"said":["hello","which one?"],"n":4,"status":"enough"' in third.body
    records = await to_thread.run_sync(house.records)
    assert [(one.event_type, one.task_id, one.level) for one in records] == [
        ("push_delivered", task.id, "info")
    ] * 3
    assert [tuple(one.payload[name] for name in PAYLOAD) for one in records] == [
        (task.id, "mine", "127.0.0.1", n, state, 1, "answered with 200")
        for n, state in enumerate(("working", "input-required", "canceled"), 2)
    ]
    assert "t0ken" not in str(records)
    assert "cr3dential" not in str(records)
    assert records[0].context == {"caller": "key:a"}


async def test_nothing_waits_while_a_notification_is_written_and_signed(house: House) -> None:
    threads = list[int]()

    def writes(task: Task, dialect: str) -> bytes:
        threads.append(get_ident())
        return write(task, dialect)

    def signs(body: bytes, audience: str) -> str:
        threads.append(get_ident())
        return sign(body, audience)

    house.delivery = replace(house.delivery, write=writes, sign=signs)
    async with receiving() as receiver, running(house.loop().run):
        await house.begin(to(receiver))
        await house.told()
    assert len(threads) == 2
    assert get_ident() not in threads


async def test_an_older_peer_is_told_in_its_own_words_without_credentials(house: House) -> None:
    loop = house.loop()
    async with receiving() as receiver, running(loop.run):
        await house.begin(to(receiver, dialect="0.3"))
        await house.told()
    (taken,) = receiver.taken
    assert taken.headers["content-type"] == "application/json"
    assert b'"dialect":"0.3"' in taken.body
    assert not {"authorization", "x-a2a-notification-token"} & taken.headers.keys()


async def test_a_task_that_nobody_is_told_of_leaves_no_row(house: House) -> None:
    task = await house.begin()
    await house.move(task, TaskState.COMPLETED)
    assert house.waiting() == []


async def test_who_fails_for_a_while_is_told_again_later_each_time(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "openfang.a2a")
    loop, statuses = house.loop(), (500, 429, 408, 503, 502, 200)
    async with receiving(*statuses) as receiver, running(loop.run):
        await house.begin(to(receiver, token="t0ken"))
        for tries in range(1, len(statuses)):
            row = await house.tried(tries)
            wait = (row.due - house.clock.time_ns()) / 1e9
            assert 2 ** (tries - 1) / 2 <= wait <= 2 ** (tries - 1)
            house.clock.advance(wait)
            loop.wake()
        await house.told()
    assert len(receiver.taken) == len(statuses)
    assert len({taken.body for taken in receiver.taken}) == 1
    (record,) = await to_thread.run_sync(house.records)
    assert (record.event_type, record.payload["tries"]) == ("push_delivered", 6)
    assert "to 127.0.0.1: answered with 503; it is tried again in" in caplog.text
    assert "hook" not in caplog.text


@pytest.mark.parametrize(
    ("status", "asked", "waits"),
    [
        (429, "40", (40, 40)),
        (503, "99999999999", (600, 600)),
        (503, "in an hour", (0.5, 1)),
        (503, "-5", (0.5, 1)),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", (0.5, 1)),
        (503, "Fri, 31 Dec 9999 23:59:59 GMT", (600, 600)),
        (500, "40", (0.5, 1)),
    ],
)
async def test_who_is_busy_says_for_how_long_within_reason(
    house: House, status: int, asked: str, waits: tuple[float, float]
) -> None:
    busy = web.Response(status=status, headers={"Retry-After": asked})
    async with receiving(busy) as receiver, running(house.loop().run):
        await house.begin(to(receiver))
        row = await house.tried(1)
    least, most = waits
    assert least <= (row.due - house.clock.time_ns()) / 1e9 <= most


async def test_receivers_that_hang_hold_up_no_other_caller(house: House) -> None:
    loop, go = house.loop(), anyio.Event()

    async def hang(_: web.BaseRequest) -> web.StreamResponse:
        await go.wait()
        return web.Response()

    hanging = [f"127.0.0.{n}" for n in range(2, 12)]
    async with receiving() as receiver, AsyncExitStack() as stack:
        for address in hanging:
            slow = await stack.enter_async_context(receiving(address=address))
            slow.answers = [hang] * 4
            for _ in range(4):
                await house.begin(to(slow), caller="key:slow")
        async with running(loop.run):
            house.clock.advance(1)
            await house.begin(to(receiver))
            await receiver.times(1)
            assert len(loop._running) <= 5
            go.set()
            await house.told()


async def test_what_cannot_be_written_or_read_is_given_up_on_record(house: House) -> None:
    def unwritable(task: Task, dialect: str) -> bytes:
        raise TypeError(task.id, dialect)

    async with receiving() as receiver:
        task = await house.begin(to(receiver))
        house.delivery = replace(house.delivery, write=unwritable)
        async with running(house.loop().run):
            await house.told()
            house.file.connection.execute("UPDATE pushes SET body = x'00'")
            await house.move(task, TaskState.COMPLETED)
            await house.told()
    assert receiver.taken == []
    records = await to_thread.run_sync(house.records)
    assert [(one.event_type, one.payload["host"], one.payload["reason"]) for one in records] == [
        ("push_given_up", "127.0.0.1", "it cannot be written"),
        ("push_given_up", "", "who is told cannot be read"),
    ]


async def test_a_restart_is_not_stopped_by_who_cannot_be_read(house: House) -> None:
    async with receiving() as receiver:
        task = await house.begin(to(receiver))
    house.file.connection.execute("UPDATE pushes SET body = x'00'")
    house.restarted()
    await house.move(task, TaskState.COMPLETED)
    assert [row.body["n"] for row in house.waiting()] == [2, 3]


async def test_who_is_down_is_told_when_they_are_back(house: House) -> None:
    loop = house.loop()
    async with receiving() as gone:
        push = to(gone)
    async with running(loop.run):
        task = await house.begin(push)
        await house.move(task, TaskState.COMPLETED)
        row = await house.tried(1)
        async with receiving(port=gone.port) as back:
            house.clock.advance((row.due - house.clock.time_ns()) / 1e9)
            loop.wake()
            await house.told()
    assert [taken.state for taken in back.taken] == ["working", "completed"]
    records = await to_thread.run_sync(house.records)
    assert [one.payload["tries"] for one in records] == [2, 1]


async def test_a_refusal_is_the_end_of_that_one_and_on_record(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    loop = house.loop()
    async with receiving(410) as receiver, running(loop.run):
        task = await house.begin(to(receiver))
        await house.move(task, TaskState.COMPLETED)
        await house.told()
    assert [taken.state for taken in receiver.taken] == ["working", "completed"]
    given_up, delivered = await to_thread.run_sync(house.records)
    assert (given_up.event_type, given_up.level) == ("push_given_up", "warning")
    assert given_up.payload["reason"] == "answered with 410"
    assert delivered.event_type == "push_delivered"
    assert f"2 about the task {task.id} to 127.0.0.1: answered with 410" in caplog.text


async def test_after_a_day_it_is_given_up(house: House) -> None:
    loop = house.loop()
    async with receiving(500, 500) as receiver, running(loop.run):
        await house.begin(to(receiver))
        await house.tried(1)
        house.clock.advance(DAY - 1)
        loop.wake()
        await house.tried(2)
        house.clock.advance(600)
        loop.wake()
        await house.told()
    assert len(receiver.taken) == 2
    (record,) = await to_thread.run_sync(house.records)
    assert record.event_type == "push_given_up"
    assert record.payload["reason"] == "nobody took it within 24 h"


async def test_what_a_node_could_not_tell_for_days_is_tried_once(house: House) -> None:
    loop = house.loop()
    async with receiving() as receiver:
        await house.begin(to(receiver))
        house.clock.advance(3 * DAY)
        async with running(loop.run):
            await house.told()
    assert len(receiver.taken) == 1


async def test_a_later_one_waits_for_the_earlier_and_other_receivers_do_not(house: House) -> None:
    loop = house.loop()
    async with receiving(500) as slow, receiving() as quick, running(loop.run):
        task = await house.begin(to(slow, name="slow"))
        await house.pushes.set(to(quick, task.id, name="quick"))
        asked = await house.move(task, TaskState.INPUT_REQUIRED, "which?")
        await house.move(asked, TaskState.COMPLETED)
        await quick.times(2)
        await house.tried(1)
        await anyio.wait_all_tasks_blocked()
        assert len(slow.taken) == 1
        house.clock.advance(1)
        loop.wake()
        await house.told()
    states = ["working", "working", "input-required", "completed"]
    assert [taken.state for taken in slow.taken] == states
    assert [taken.state for taken in quick.taken] == states[2:]


async def test_a_restart_between_change_and_delivery_loses_nothing(house: House) -> None:
    async with receiving() as receiver:
        task = await house.begin(to(receiver))
        house.restarted()
        await house.move(task, TaskState.COMPLETED)
        house.restarted()
        async with running(house.loop().run):
            await house.told()
    assert [taken.state for taken in receiver.taken] == ["working", "completed"]


async def test_what_was_told_but_not_recorded_is_told_again(house: House) -> None:
    loop, connection = house.loop(), house.file.connection
    async with receiving() as receiver:
        await house.begin(to(receiver))
        async with running(loop.run):
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
            await house.tried(1)
            connection.execute("DROP TRIGGER full")
            house.clock.advance(1)
            loop.wake()
            await house.told()
    assert [taken.state for taken in receiver.taken] == ["working", "working"]
    assert len(await to_thread.run_sync(house.records)) == 1


async def test_a_last_change_that_failed_to_be_written_is_told_once_it_is(house: House) -> None:
    loop, connection = house.loop(), house.file.connection
    async with receiving() as receiver, running(loop.run):
        task = await house.begin(to(receiver))
        connection.execute("ALTER TABLE task_events RENAME TO away")
        with pytest.raises(Exception, match="audit unavailable"):
            await house.move(task, TaskState.COMPLETED)
        connection.execute("ALTER TABLE away RENAME TO task_events")
        await house.move(task, TaskState.COMPLETED)
        await house.told()
    assert [taken.state for taken in receiver.taken] == ["working", "completed"]


async def test_a_redirect_is_a_refusal_and_not_followed(house: House) -> None:
    loop = house.loop()
    async with receiving() as elsewhere, running(loop.run):
        moved = web.Response(status=307, headers={"Location": elsewhere.url()})
        async with receiving(moved) as receiver:
            await house.begin(to(receiver))
            await house.told()
        assert (len(receiver.taken), elsewhere.taken) == (1, [])
    (record,) = await to_thread.run_sync(house.records)
    assert (record.event_type, record.payload["reason"]) == ("push_given_up", "answered with 307")


async def test_an_endless_answer_is_not_read(house: House) -> None:
    loop = house.loop()
    async with receiving(web.Response(body=bytes(5_000_000))) as receiver, running(loop.run):
        await house.begin(to(receiver))
        await house.told()
    assert len(receiver.taken) == 1


async def test_what_was_set_is_listed_replaced_and_deleted(house: House) -> None:
    async with receiving() as receiver:
        task = await house.begin()
        kept = to(receiver, task.id, token="t", scheme="Basic", credentials="c", dialect="0.3")
        assert await house.pushes.set(kept) == kept
        named = await house.pushes.set(to(receiver, task.id, name=""))
        assert named.id == task.id
        changed = await house.pushes.set(replace(kept, token="u"))
        assert await house.pushes.of(task.id) == [changed, named]
        await house.pushes.delete(task.id, "mine")
        await house.pushes.delete(task.id, "mine")
        assert await house.pushes.of(task.id) == [named]
        assert await house.pushes.of("task_of_nobody") == []
        await house.move(task, TaskState.COMPLETED)
        assert [row.body["push"] for row in house.waiting()] == [task.id]


async def test_nobody_is_told_who_was_deleted(house: House) -> None:
    async with receiving() as receiver:
        deleted = await house.begin(to(receiver))
        await house.move(deleted, TaskState.COMPLETED)
        await house.pushes.delete(deleted.id, "mine")
        assert house.waiting() == []
        lost = await house.begin(to(receiver))
        house.file.connection.execute("DELETE FROM pushes")
        async with running(house.loop().run):
            await house.told()
        assert receiver.taken == []
        assert await house.pushes.of(lost.id) == []


async def test_what_nobody_was_told_before_its_task_made_way_is_on_record(house: House) -> None:
    async with receiving() as receiver:
        evicted = await house.begin(to(receiver))
        await house.move(evicted, TaskState.COMPLETED)
        await house.broker.append((), tasks.evict(1))
        assert await house.pushes.of(evicted.id) == []
        async with running(house.loop().run):
            await house.told()
    assert receiver.taken == []
    records = await to_thread.run_sync(house.records)
    assert [(one.event_type, one.task_id, one.context) for one in records] == [
        ("push_given_up", evicted.id, {"caller": "key:a"})
    ] * 2
    assert [tuple(one.payload[name] for name in PAYLOAD) for one in records] == [
        (evicted.id, "mine", "", n, state, 1, "the task has made way for others")
        for n, state in ((2, "working"), (3, "completed"))
    ]


async def test_ten_are_told_of_a_task_and_no_more_also_side_by_side(house: House) -> None:
    refused = list[Rejected]()

    async def add(push: Push) -> None:
        try:
            await house.pushes.set(push)
        except Rejected as rejected:
            refused.append(rejected)

    async with receiving() as receiver:
        task = await house.begin()
        async with anyio.create_task_group() as group:
            for number in range(MOST_PUSHES + 3):
                group.start_soon(add, to(receiver, task.id, name=f"{number}"))
        assert len(await house.pushes.of(task.id)) == MOST_PUSHES
        assert [(one.status, one.rule) for one in refused] == [(400, "push_limit")] * 3
        await house.pushes.set((await house.pushes.of(task.id))[0])
        await house.move(task, TaskState.COMPLETED)
        assert len(house.waiting()) == MOST_PUSHES


async def test_of_a_task_that_is_not_there_nobody_is_told(house: House) -> None:
    with pytest.raises(NotFound):
        await house.pushes.set(Push(id="", task="task_x", url="http://127.0.0.1:1/"))


async def test_of_an_ended_task_nothing_is_kept_in_mind(house: House) -> None:
    async with receiving() as receiver:
        task = await house.move(await house.begin(to(receiver)), TaskState.COMPLETED)
        await house.pushes.set(to(receiver, task.id, name="late"))
        never = to(receiver, "task_that_failed_to_begin")
        house.pushes.put(never)
        house.pushes.forget(never.task)
    assert house.pushes._told == {}
    house.restarted()
    assert (house.pushes._told, house.pushes._ended) == ({}, {})


@pytest.mark.parametrize("first", ["set", "move"])
async def test_who_is_set_while_the_task_ends_is_told_of_its_end_once(
    house: House, first: str
) -> None:
    async with receiving() as receiver:
        task, writing = await house.begin(), house.file.connection
        acts: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "set": partial(house.pushes.set, to(receiver, task.id)),
            "move": partial(house.move, task, TaskState.COMPLETED),
        }
        # Nothing else is written before both have begun.
        writing.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as group:
            for name in sorted(acts, key=lambda name: name != first):
                group.start_soon(acts[name])
            await anyio.wait_all_tasks_blocked()
            writing.execute("COMMIT")
        assert (len(house.waiting()), house.pushes._told) == (1, {})
        async with running(house.loop().run):
            await house.told()
    assert [taken.state for taken in receiver.taken] == ["completed"]


async def test_who_could_not_be_set_is_not_kept_in_mind(house: House) -> None:
    async with receiving() as receiver:
        task = await house.begin()
        house.file.connection.execute("ALTER TABLE pushes RENAME TO away")
        with pytest.raises(AuditUnavailable):
            await house.pushes.set(to(receiver, task.id))
    assert house.pushes._told == {}


async def test_what_is_kept_of_a_push_cannot_be_read_in_the_database(house: House) -> None:
    async with receiving() as receiver:
        task = await house.begin(to(receiver, token="t0ken", scheme="Bearer", credentials="cr3d"))
    read = house.tasks.database.read
    kept = str(await read("SELECT * FROM pushes")) + str(await read("SELECT * FROM timers"))
    assert task.id in kept
    assert not [word for word in ("t0ken", "cr3d", "127.0.0.1", "Bearer") if word in kept]


BAD_TARGETS = [
    "ftp://example.com/",
    "file:///etc/passwd",
    "example.com",
    "",
    "http://user:pa55@93.184.215.14/",
    "http://93.184.215.14@127.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://metadata.google.internal/",
    "http://instance-data/",
    "http://0.0.0.0/",
    "http://2130706433/",
    "http://127.1/",
    "http://no-such-name.invalid/",
    "http://example.com/\r\nX: y",
    "http://example.com:99999/",
]
INSIDE = ["http://127.0.0.1:1/", "http://[::1]/", "http://10.0.0.1/", "http://localhost:1/"]


@pytest.mark.parametrize("url", BAD_TARGETS)
@pytest.mark.requirement("C3.9")
async def test_what_must_never_be_reached_is_no_target(house: House, url: str) -> None:
    task = await house.begin()
    with pytest.raises(Rejected) as refusal:
        await house.pushes.set(Push(id="", task=task.id, url=url))
    assert (refusal.value.status, refusal.value.rule) == (400, "push_target")
    assert "pa55" not in refusal.value.message
    assert await house.pushes.of(task.id) == []


@pytest.mark.parametrize("url", INSIDE)
@pytest.mark.requirement("C3.9")
async def test_the_inside_is_no_target_unless_the_operator_says_so(house: House, url: str) -> None:
    task, push = await house.begin(), Push(id="p", task="", url=url)
    house.private = False
    with pytest.raises(Rejected) as refusal:
        await house.pushes.set(replace(push, task=task.id))
    assert refusal.value.rule == "push_target"
    assert "a2a.push.allow_private" in refusal.value.way_out
    house.private = True
    assert await house.pushes.set(replace(push, task=task.id))


@pytest.mark.requirement("C3.9")
async def test_a_switch_that_was_closed_since_holds_for_what_was_set_before(house: House) -> None:
    loop = house.loop()
    async with receiving() as receiver, running(loop.run):
        await house.begin(to(receiver))
        house.private = False
        await house.tried(1)
        assert receiver.taken == []


@pytest.mark.requirement("C3.9")
async def test_an_address_that_stays_closed_is_given_up_after_five_tries(house: House) -> None:
    loop = house.loop()
    house.private = False
    async with receiving() as receiver, running(loop.run):
        await house.begin(to(receiver))
        await tried_so_often(house, loop, 4)
        await house.told()
    assert receiver.taken == []
    (record,) = await to_thread.run_sync(house.records)
    assert (record.event_type, record.payload["tries"]) == ("push_given_up", 5)
    assert record.payload["reason"] == "address_refused"


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[House]:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError(f"{host}:{port} is nowhere")

    with pushing(tmp_path, resolve) as made:
        yield made


async def test_a_name_that_is_lost_for_a_while_is_no_closed_address(lost: House) -> None:
    loop = lost.loop()
    async with running(loop.run):
        await lost.begin(Push(id="p", task="", url="http://peer.example/"))
        await tried_so_often(lost, loop, 6)
        await lost.tried(7)


async def tried_so_often(house: House, loop: Timers, tries: int) -> None:
    for count in range(1, tries + 1):
        row = await house.tried(count)
        house.clock.advance((row.due - house.clock.time_ns()) / 1e9)
        loop.wake()


@pytest.mark.parametrize(
    "words",
    [
        {"name": "x" * 201},
        {"name": "a\x00b"},
        {"name": "\ud800"},
        {"token": "a\r\nX: y"},
        {"token": "x" * 8193},
        {"token": "a "},
        {"scheme": "Bear er", "credentials": "c"},
        {"scheme": "Bearer", "credentials": "c\nd"},
        {"credentials": "c"},
        {"dialect": "seed"},
    ],
)
async def test_what_cannot_be_sent_is_refused_when_it_is_set(
    house: House, words: dict[str, str]
) -> None:
    async with receiving() as receiver:
        task = await house.begin()
        with pytest.raises(Rejected) as refusal:
            await house.pushes.set(to(receiver, task.id, **words))
    assert (refusal.value.status, refusal.value.rule) == (400, "push_config")


MOVES = st.lists(
    st.tuples(
        st.sampled_from([TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED]),
        st.booleans(),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=8,
)


@given(MOVES)
def test_a_task_is_told_as_it_was_however_far_it_has_got(
    moves: list[tuple[TaskState, bool, int, int]],
) -> None:
    known = Task(id="t", agent="a", caller="c", context="c", session="s", state=TaskState.WORKING)
    snapshots = [known]
    for at, (state, asks, said, made) in enumerate(moves, 1):
        moved = Moved(
            state=state,
            status=says("?", Role.AGENT) if asks else None,
            said=tuple(says(f"{n}") for n in range(said)),
            artifacts=tuple(TaskArtifact(id=f"{n}", name="", parts=()) for n in range(made)),
        )
        snapshots.append(snapshots[-1].moved(moved, at))
    for then in snapshots:
        body = {**notice_body(then), "push": "p", "n": then.version}
        assert as_of(snapshots[-1], Notice.of(body)) == then
