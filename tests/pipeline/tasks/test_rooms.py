"""What is known of a task where it is worked on or watched, and what other nodes hear of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.pipeline.tasks.scene import Held, answers, idle, says, scene
from tests.pipeline.tasks.test_questions import ONE, asked, asks
from tests.pipeline.tasks.test_service import breaks

from openfang.core.errors import Conflict, SourceFailed
from openfang.core.progress import Words
from openfang.core.tasks import Moved, Spoken, Task, TaskState, TaskUpdate
from openfang.pipeline.tasks import carrying
from openfang.pipeline.tasks.carrying import WATCHED, WORDS, Carrying
from openfang.pipeline.tasks.engine import Inline
from openfang.pipeline.tasks.outcomes import expired
from openfang.pipeline.tasks.rooms import MOST_WAITING, Rooms, Watcher
from openfang.pipeline.tasks.telling import MOST_SPOKEN, Speech
from openfang.pipeline.tasks.watching import _newest
from openfang.storage.queued import QUEUE, own

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from openfang.pipeline.tasks.engine import Written
    from openfang.pipeline.tasks.service import Work
    from openfang.storage.tasks import Statement

pytestmark = pytest.mark.requirement("C5.6")
TASK = Task(
    id="task_1", agent="echo", caller="key:me", context="", session="", state=TaskState.WORKING
)
UPDATE = TaskUpdate(task=TASK, what=Moved(state=TaskState.WORKING), at=1, n=1)


async def test_who_watches_looks_first_whether_it_has_changed_elsewhere() -> None:
    watcher = Watcher()
    assert await watcher.news() is None
    watcher.tell(UPDATE)
    assert await watcher.news() is UPDATE


async def test_who_reads_nothing_has_so_many_before_them_and_no_more() -> None:
    watcher = Watcher()
    assert all(watcher.tell(UPDATE) for _ in range(MOST_WAITING))
    assert not watcher.tell(UPDATE)
    with pytest.raises(SourceFailed):
        await watcher.news()


async def test_what_was_known_while_it_was_worked_on_is_forgotten_with_the_end(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as node:
        held = Held()
        task = await node.begin(held)
        assert await node.service.find(task.id) is node.service._rooms.task(task.id)
        with node.service._rooms.of(task.id) as room, anyio.fail_after(30):
            held.go.set()
            await node.service.settled(task.id)
            await idle(node.service)
            assert (room.task, room.scope, room.speech) == (None, None, None)


async def test_a_question_that_was_answered_is_asked_no_more(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        task = await node.begin(asks(ONE))
        await asked(node.service, task.id)
        with node.service._rooms.of(task.id) as room, anyio.fail_after(30):
            assert room.question is not None
            await node.service.answer(task.id, says("red"))
            await idle(node.service)
            assert room.question is None


async def test_whoever_has_lost_a_task_to_another_process_says_that_it_has_not_ended(
    tmp_path: Path,
) -> None:
    held, ended = Held(), list[bool]()

    async def build(task: Task) -> Work:
        del task
        return held

    async with scene(tmp_path) as node:
        task = await node.begin(Held())
    async with scene(tmp_path) as again:
        again.database.connection.execute("UPDATE tasks SET process = ?", (QUEUE,))

        async def work() -> None:
            ended.append(await again.service.work(task.id, build))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                await held.began.wait()
                by = own("other")[1]
                again.database.connection.execute("UPDATE tasks SET process = ?", (by,))
                again.service._hear("")  # anything may have changed
    assert ended == [False]


@dataclass
class Queues(Inline):
    """Puts every task on a queue, and looks at it when it is said to be kept."""

    look: Callable[[], object]
    seen: list[object] = field(default_factory=list[object])

    async def queued(self, task: Task, recipe: Written) -> Sequence[Statement]:
        del task, recipe
        return (("UPDATE settings SET value = value", ()),)

    def kept(self) -> None:
        self.seen.append(self.look())


async def test_who_hands_tasks_on_hears_of_one_once_it_can_be_taken(tmp_path: Path) -> None:
    async with scene(tmp_path) as node:
        sql = "SELECT process FROM tasks"
        queues = node.service.engine = Queues(look=lambda: node.database.read_now(sql))
        await node.begin(answers)
        assert queues.seen == [[(QUEUE,)]]


@pytest.mark.parametrize(("state", "level"), [("failed", "warning"), ("completed", "info")])
async def test_a_change_is_on_record_with_its_conversation_and_how_grave_it_is(
    tmp_path: Path, state: str, level: str
) -> None:
    work = answers if state == "completed" else breaks(SourceFailed("It broke."))
    async with scene(tmp_path) as node:
        task = await node.begin(work, context="talk")
        with anyio.fail_after(30):
            await node.service.settled(task.id)
        sql = "SELECT level, payload FROM audit WHERE event = 'task_changed' ORDER BY seq"
        *_, (found, payload) = node.database.read_now(sql)
    told = json.loads(payload)
    assert (found, told["to"], told["context"]) == (level, state, "talk")


def test_what_has_changed_since_does_not_expire() -> None:
    assert expired(TASK, 0, 3600).state is TaskState.FAILED
    with pytest.raises(Conflict):
        expired(replace(TASK, changed_at=2), 1, 3600)


def test_the_newest_that_is_known_is_taken() -> None:
    older, newer = replace(TASK, version=2), replace(TASK, version=3)
    assert _newest(older, None, newer) is newer
    assert _newest(newer, older) is newer
    assert _newest(None) is None


async def test_as_many_characters_are_told_on_the_way_as_is_said_and_no_more() -> None:
    told = list[Spoken]()
    speech = Speech(told.append)
    speech(Words("x" * MOST_SPOKEN))
    speech(Words("y"))
    speech.flush()
    assert [len(one.text) for one in told] == [MOST_SPOKEN]


@dataclass
class Wire:
    """What nodes tell each other, here to nobody but who looks at it."""

    told: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    hears: dict[str, Callable[[str], None]] = field(
        default_factory=dict[str, "Callable[[str], None]"]
    )

    def on(self, kind: str, hear: Callable[[str], None]) -> bool:
        self.hears[kind] = hear
        return True

    def tell(self, kind: str, subject: str) -> None:
        self.told.append((kind, subject))


def carried(wire: Wire, rooms: Rooms) -> Carrying:
    made = Carrying(wire, rooms, lambda: 1)  # type: ignore[arg-type]
    made.listen()
    return made


def speaking(rooms: Rooms, text: str) -> Speech:
    """Somebody who works on the task here, and has said that."""
    room = rooms.of(TASK.id)
    room.enter()
    room.task, room.speech = TASK, Speech(lambda _: None)
    room.speech._said.append(text)
    return room.speech


def test_words_go_out_while_somebody_watches_elsewhere_and_not_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire, rooms = Wire(), Rooms()
    carrying_ = carried(wire, rooms)
    speaking(rooms, "good day")
    room, spoken = rooms.of(TASK.id), Spoken(text=" day", first=False)
    carrying_.spoken(room, spoken)
    assert wire.told == []
    wire.hears[WATCHED](f"{TASK.id} 8")
    carrying_.spoken(room, spoken)
    assert wire.told == [(WORDS, json.dumps([TASK.id, 4, " day"]))]
    carrying_.forget(TASK.id)
    carrying_.spoken(room, spoken)
    assert len(wire.told) == 1
    monkeypatch.setattr(carrying, "_KEPT", -1.0)  # whoever watched has not said so for long
    wire.hears[WATCHED](f"{TASK.id} 8")
    carrying_.spoken(room, spoken)
    assert (len(wire.told), carrying_._watched) == (1, {})


def test_who_comes_later_is_told_all_of_it_and_who_has_it_nothing() -> None:
    wire, rooms = Wire(), Rooms()
    carried(wire, rooms)
    speaking(rooms, "good day")
    wire.hears[WATCHED](f"{TASK.id} 8")
    wire.hears[WATCHED]("")
    assert wire.told == []
    wire.hears[WATCHED](f"{TASK.id} 0")
    assert wire.told == [(WORDS, json.dumps([TASK.id, 0, "good day"]))]


def test_who_watches_says_so_and_not_again_for_a_while() -> None:
    wire, rooms = Wire(), Rooms()
    made, room = carried(wire, rooms), rooms.of(TASK.id)
    room.said_at = float("-inf")
    made.want(room)
    made.want(room)
    assert wire.told == [(WATCHED, f"{TASK.id} 0")]


def test_words_that_come_in_their_order_are_told_and_missing_ones_asked_for() -> None:
    wire, rooms = Wire(), Rooms()
    carried(wire, rooms)
    room = rooms.of(TASK.id)
    room.seen, room.said_at = TASK, float("-inf")
    heard = list[tuple[str, bool]]()

    class Hears(Watcher):
        def tell(self, update: TaskUpdate) -> bool:
            assert isinstance(update.what, Spoken)
            heard.append((update.what.text, update.what.first))
            return True

    room._watchers[Hears()] = None
    for place, text in ((0, "good"), (4, " day"), (0, "good"), (0, "good day, you"), (99, "late")):
        wire.hears[WORDS](json.dumps([TASK.id, place, text]))
    wire.hears[WORDS]("")
    wire.hears[WORDS](json.dumps(["task_none", 0, "x"]))
    assert heard == [("good", True), (" day", False), (", you", False)]
    assert wire.told == [(WATCHED, f"{TASK.id} {len('good day, you')}")]
