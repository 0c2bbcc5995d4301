"""The task board through the whole path: posted, claimed by one alone, completed by its owner."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from openfang.core.calls import EVERYTHING, Caller, Mode
from openfang.core.errors import InvalidArguments, Parked, PolicyViolation, UnknownTool
from openfang.core.labels import Labels
from openfang.policy.context import Wish
from openfang.storage import board
from openfang.storage.board import (
    MOST_COMPLETED,
    MOST_OPEN,
    BoardStore,
    Change,
    Posting,
    Status,
    Viewer,
)
from openfang.storage.units import Unit
from openfang.testing import OpenApp, open_test_app
from openfang.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from openfang.core.results import Result

pytestmark = pytest.mark.requirement("C6.2")
ROOT = "key:admin"
HOUR = 3600


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def app(tmp_path: Path, clock: ManualClock) -> AsyncGenerator[OpenApp]:
    async with open_test_app(tmp_path / "home", clock=clock) as opened:
        yield opened


class Agent:
    """One that works on somebody's behalf."""

    def __init__(self, app: OpenApp, name: str, root: str = ROOT) -> None:
        self.app = app
        self.root = root
        self.caller = Caller(
            id=f"agent:{name}",
            grants=replace(EVERYTHING, agents=("*",)),
            projects=("default",),
        )

    async def __call__(self, tool: str, /, labels: Labels = Labels.NONE, **asked: Any) -> Result:
        call = self.app.make(tool, asked, caller=self.caller, asker=self.root, labels=labels)
        return await self.app.invoke(call)

    async def titles(self, **asked: Any) -> list[str]:
        return titles(await self("task_list", **asked))


def titles(listed: Result) -> list[str]:
    return [task["title"] for task in listed.structured["tasks"]]


async def post(app: OpenApp, title: str, **more: Any) -> str:
    posted = await app.call("task_post", title=title, description=f"Do {title}.", **more)
    assert not posted.is_error, posted.text
    return posted.structured["task_id"]


async def test_a_task_goes_from_one_to_another_and_its_result_comes_back(app: OpenApp) -> None:
    coder = Agent(app, "coder")
    task = await post(app, "figs")
    claimed = await coder("task_claim")
    assert claimed.text == f"{task} in_progress, agent:coder: figs\n\nDo figs."
    assert claimed.structured["owner"] == "agent:coder"
    assert not (await coder("task_complete", task_id=task, result="ripe")).is_error
    listed = await app.call("task_list", status="completed")
    assert listed.text == f"{task} completed, agent:coder: figs: ripe"
    (row,) = listed.structured["tasks"]
    assert (
        row.items()
        >= {
            "task_id": task,
            "description": "Do figs.",
            "result": "ripe",
            "posted_by": ROOT,
            "owner": "agent:coder",
            "labels": [],
        }.items()
    )
    assert (await coder("task_claim")).structured == {"task_id": None}


async def test_the_most_urgent_is_claimed_first_then_the_oldest(
    app: OpenApp, clock: ManualClock
) -> None:
    for title, priority in (("a", 0), ("b", 9), ("c", 0), ("d", 9)):
        await post(app, title, priority=priority)
        clock.advance(0.001)
    coder = Agent(app, "coder")
    claimed = [(await coder("task_claim")).structured["title"] for _ in range(4)]
    assert claimed == ["b", "d", "a", "c"]


async def test_what_is_assigned_by_name_is_for_that_agent(app: OpenApp) -> None:
    task = await post(app, "figs", assigned_to="assistant")
    await post(app, "dates", assigned_to="agent:echo")
    coder, assistant = Agent(app, "coder"), Agent(app, "assistant")
    assert (await coder("task_claim")).structured == {"task_id": None}
    hidden = await coder("task_claim", task_id=task)
    assert (hidden.is_error, "no task" in hidden.text) == (True, True)
    assert (await assistant("task_claim")).structured["title"] == "figs"
    assert (await Agent(app, "echo")("task_claim")).structured["title"] == "dates"


async def test_work_can_be_given_only_to_those_one_may_send_messages_to(app: OpenApp) -> None:
    refused = await app.call("task_post", title="a", description="", assigned_to="nobody")
    assert (refused.is_error, "nobody" in refused.text) == (True, True)
    lonely = Agent(app, "lonely")
    lonely.caller = replace(lonely.caller, grants=replace(EVERYTHING, agents=()))
    asked: dict[str, Any] = {"title": "a", "description": ""}
    assert (await lonely("task_post", **asked, assigned_to="assistant")).is_error
    assert not (await lonely("task_post", **asked, assigned_to="lonely")).is_error
    assert not (await lonely("task_post", **asked, assigned_to=ROOT)).is_error


async def test_only_its_owner_completes_a_task_and_only_once(app: OpenApp) -> None:
    task = await post(app, "figs")
    coder, other = Agent(app, "coder"), Agent(app, "other")
    early = await coder("task_complete", task_id=task, result="x")
    assert (early.is_error, "task_claim it first" in early.text) == (True, True)
    await coder("task_claim", task_id=task)
    stolen = await app.call("task_complete", task_id=task, result="mine")
    assert (stolen.is_error, "agent:coder's until" in stolen.text) == (True, True)
    assert (await other("task_complete", task_id=task, result="mine")).is_error
    assert not (await coder("task_complete", task_id=task, result="ripe")).is_error
    again = await coder("task_complete", task_id=task, result="rotten")
    assert (again.is_error, "completed already" in again.text) == (True, True)
    assert (await app.call("task_list")).structured["tasks"][0]["result"] == "ripe"
    assert (await app.call("task_claim", task_id=task)).is_error


async def test_one_sees_what_is_for_anybody_or_oneself_and_the_boards_own_sees_all(
    app: OpenApp,
) -> None:
    for title, who in (("free", {}), ("for a", {"assigned_to": "assistant"})):
        await post(app, title, **who)
    coder, assistant = Agent(app, "coder"), Agent(app, "assistant")
    await coder("task_post", title="of c", description="", assigned_to="assistant")
    assert sorted(await coder.titles()) == ["free", "of c"]
    assert sorted(await assistant.titles()) == ["for a", "free", "of c"]
    assert len(titles(await app.call("task_list"))) == 3
    await assistant("task_claim")
    await assistant("task_claim")
    assert sorted(await coder.titles(status="pending")) == ["of c"]


async def test_the_boards_of_two_keys_are_apart(app: OpenApp) -> None:
    task = await post(app, "figs")
    stranger = Agent(app, "coder", root="key:other")
    assert await stranger.titles() == []
    assert (await stranger("task_claim")).structured == {"task_id": None}
    more: dict[str, Any]
    for tool, more in (("task_claim", {}), ("task_complete", {"result": "x"}), ("task_list", {})):
        refused = await stranger(tool, task_id=task, **more)
        assert (refused.is_error, "There is no task" in refused.text) == (True, True)
    assert titles(await app.call("task_list", status="pending")) == ["figs"]


async def test_a_claim_ends_and_the_task_is_free_again(app: OpenApp, clock: ManualClock) -> None:
    task = await post(app, "figs")
    dead, coder = Agent(app, "dead"), Agent(app, "coder")
    await dead("task_claim")
    clock.advance(HOUR - 1)
    kept = await coder("task_claim", task_id=task)
    assert (kept.is_error, "agent:dead's until" in kept.text) == (True, True)
    assert (await coder("task_claim")).structured == {"task_id": None}
    clock.advance(1)
    assert (await coder("task_claim")).structured["task_id"] == task
    assert (await dead("task_complete", task_id=task, result="late")).is_error
    assert not (await coder("task_complete", task_id=task, result="ripe")).is_error


async def test_an_owner_that_is_late_completes_what_nobody_else_has_claimed(
    app: OpenApp, clock: ManualClock
) -> None:
    task = await post(app, "figs")
    coder = Agent(app, "coder")
    await coder("task_claim")
    clock.advance(HOUR + 1)
    assert not (await coder("task_complete", task_id=task, result="ripe")).is_error


async def test_an_owner_claims_again_to_keep_it_for_longer(
    app: OpenApp, clock: ManualClock
) -> None:
    task = await post(app, "figs")
    coder = Agent(app, "coder")
    for _ in range(3):
        assert not (await coder("task_claim", task_id=task)).is_error
        clock.advance(HOUR - 1)
    assert (await Agent(app, "other")("task_claim", task_id=task)).is_error


async def test_the_operator_says_how_long_a_claim_holds(tmp_path: Path, clock: ManualClock) -> None:
    config = "[tools.tasks]\nclaim_secs = 10\n"
    async with open_test_app(tmp_path / "home", config=config, clock=clock) as app:
        await post(app, "figs")
        await Agent(app, "dead")("task_claim")
        clock.advance(10)
        assert (await Agent(app, "coder")("task_claim")).structured["title"] == "figs"


async def test_whose_board_it_is_may_take_any_task_over(app: OpenApp) -> None:
    task = await post(app, "figs", assigned_to="assistant")
    assistant = Agent(app, "assistant")
    await assistant("task_claim")
    assert (await app.call("task_claim")).structured == {"task_id": None}
    assert (await app.call("task_claim", task_id=task)).structured["owner"] == ROOT
    assert (await assistant("task_complete", task_id=task, result="x")).is_error
    assert not (await app.call("task_complete", task_id=task, result="mine")).is_error


async def test_labels_stay_with_the_task_and_grow_with_its_result(app: OpenApp) -> None:
    coder, poster = Agent(app, "coder"), Agent(app, "poster")
    await poster("task_post", Labels.EXTERNAL_NETWORK, title="a", description="from a page")
    claimed = await coder("task_claim")
    assert claimed.labels & Labels.EXTERNAL_NETWORK
    assert claimed.structured["labels"] == ["external_network"]
    task = claimed.structured["task_id"]
    await coder("task_complete", Labels.LOCAL_FILE, task_id=task, result="from a file")
    both = Labels.EXTERNAL_NETWORK | Labels.LOCAL_FILE
    assert (await app.call("task_list")).labels & both == both
    assert (await app.call("task_list", task_id=task)).labels & both == both
    assert not (await app.call("task_list", status="pending")).labels


async def test_what_was_posted_from_a_page_makes_a_claimant_ask_before_it_acts(
    app: OpenApp,
) -> None:
    await Agent(app, "poster")("task_post", Labels.EXTERNAL_NETWORK, title="a", description="rm")
    coder = Agent(app, "coder")
    call = app.make("task_claim", {}, caller=coder.caller, asker=ROOT, run="run_1")
    await app.invoke(call)
    next_call = replace(call, tool="file_write", arguments={"path": "a", "content": "b"}, id="c2")
    with pytest.raises(Parked) as parked:
        await app.invoke(next_call)
    assert parked.value.rule == "untrusted_effect"


async def test_long_texts_are_cut_in_a_list_and_whole_for_one(app: OpenApp) -> None:
    task = (await app.call("task_post", title="a", description="x" * 20_000)).structured["task_id"]
    await app.call("task_claim")
    await app.call("task_complete", task_id=task, result="y" * 20_000)
    (cut,) = (await app.call("task_list")).structured["tasks"]
    assert len(cut["description"]) < 700
    assert len(cut["result"]) < 700
    (whole,) = (await app.call("task_list", task_id=task)).structured["tasks"]
    assert (len(whole["description"]), len(whole["result"])) == (20_000, 20_000)


async def test_a_list_says_how_many_there_are(app: OpenApp) -> None:
    for number in range(3):
        await post(app, f"n{number}")
    listed = await app.call("task_list", limit=2)
    assert (len(titles(listed)), listed.structured["total"]) == (2, 3)
    assert listed.text.endswith("[2 of 3]")


@pytest.mark.parametrize(
    ("tool", "wrong"),
    [
        ("task_post", {"title": "a"}),
        ("task_post", {"title": "", "description": "b"}),
        ("task_post", {"title": "a" * 201, "description": "b"}),
        ("task_post", {"title": "a", "description": "b" * 20_001}),
        ("task_post", {"title": "a", "description": "b", "priority": 10}),
        ("task_post", {"title": "a", "description": "b", "assigned_to": ""}),
        ("task_claim", {"task_id": 7}),
        ("task_claim", {"task_id": ""}),
        ("task_complete", {"task_id": "a"}),
        ("task_complete", {"task_id": "a", "result": "b" * 40_001}),
        ("task_list", {"status": "lost"}),
        ("task_list", {"limit": 0}),
        ("task_list", {"limit": 101}),
    ],
)
async def test_bad_arguments_are_refused(app: OpenApp, tool: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments):
        await app.call(tool, **wrong)


@pytest.mark.parametrize("tool", ["task_post", "task_claim", "task_complete", "task_list"])
async def test_without_the_grant_there_is_no_board(app: OpenApp, tool: str) -> None:
    coder = Agent(app, "coder")
    coder.caller = replace(coder.caller, grants=replace(EVERYTHING, tools=("system_time",)))
    with pytest.raises(UnknownTool):
        await coder(tool)


async def test_while_planning_the_board_is_only_looked_at(app: OpenApp) -> None:
    wish = Wish(mode=Mode.PLANNING)
    assert not (await app.invoke(app.make("task_list", {}, wish=wish))).is_error
    with pytest.raises(PolicyViolation):
        await app.invoke(app.make("task_claim", {}, wish=wish))


async def test_a_board_holds_so_many_open_tasks_and_keeps_so_many_completed(app: OpenApp) -> None:
    await fill(app, MOST_COMPLETED, Status.COMPLETED)
    await fill(app, MOST_OPEN, Status.PENDING)
    full = await app.call("task_post", title="a", description="")
    assert (full.is_error, str(MOST_OPEN) in full.text) == (True, True)
    task = (await app.call("task_claim")).structured["task_id"]
    await app.call("task_complete", task_id=task, result="newest")
    done = await app.call("task_list", status="completed", limit=100)
    assert done.structured["total"] == MOST_COMPLETED
    assert not (await app.call("task_post", title="a", description="")).is_error


async def fill(app: OpenApp, count: int, status: Status) -> None:
    rows = [
        Posting(
            id=f"todo_{status.value}{number}",
            space=ROOT,
            title="t",
            description="",
            posted_by=ROOT,
            posted_at=number,
            status=status,
        )
        for number in range(count)
    ]
    await app.parts.writer.write(Unit(statements=tuple(board.post(row) for row in rows)))


async def test_of_many_that_claim_at_once_each_gets_another(app: OpenApp) -> None:
    for number in range(20):
        await post(app, f"n{number}")
    agents = [Agent(app, f"a{number}") for number in range(30)]
    got: list[str | None] = []

    async def take(agent: Agent) -> None:
        got.append((await agent("task_claim")).structured["task_id"])

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(take, agent)
    claimed = [task for task in got if task]
    assert (len(claimed), len(set(claimed))) == (20, 20)


async def test_connections_that_claim_at_once_each_get_others(app: OpenApp) -> None:
    for number in range(40):
        await post(app, f"n{number}")
    path = app.file.path
    got: list[Sequence[str]] = []

    async def take(name: str) -> None:
        got.append(await to_thread.run_sync(claim_apart, path, name))

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(take, f"agent:a{number}")
    claimed = [task for tasks in got for task in tasks]
    assert (len(claimed), len(set(claimed))) == (40, 40)


def claim_apart(path: Path, name: str) -> list[str]:
    """Claim all that one can get, over a connection of one's own."""
    got: list[str] = []
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        for number in range(40):
            call = f"{name}/{number}"
            change = Change(viewer=Viewer(id=name, space=ROOT), call=call, now=0)
            connection.execute(*board.claim_next(change, 1))
            sql = "SELECT id FROM board WHERE changed_by = ?"
            got += [row[0] for row in connection.execute(sql, (call,))]
    return got


async def test_what_is_on_the_board_survives_the_node(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home") as app:
        task = await post(app, "figs")
        await Agent(app, "coder")("task_claim")
    async with open_test_app(tmp_path / "home") as app:
        store = BoardStore(app.parts.database)
        found = await store.find(Viewer(id=ROOT, space=ROOT), task)
        assert found is not None
        assert (found.status, found.owner) == (Status.IN_PROGRESS, "agent:coder")
