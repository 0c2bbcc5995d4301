"""A node that is out of reach for a moment goes on, whatever of its way back is broken too."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest
from tests.cluster.house import homes
from tests.cluster.kitchen import Kitchen, knows, rows, state, task, until
from tests.cluster.test_takeover import member, ready
from tests.cluster.wires import Wire
from tests.faults.dialects import RPC1, Sending

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.cli.conftest import Cli
    from tests.cluster.house import Node

pytestmark = [
    pytest.mark.requirement("C13.3", "C5.6"),
    pytest.mark.needs("bwrap"),
    pytest.mark.timeout(600),
]
CUT_OFF = (503, "cut off from the database")
READY = (200, "ready")
DRAINING = (503, "draining")
LONG = 150.0
"""Ten times what it may take."""
ONCE = """
CREATE SEQUENCE tries;
CREATE FUNCTION break_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('tries') = 1 THEN
    PERFORM pg_terminate_backend(pg_backend_pid());
    PERFORM pg_sleep(1);
  END IF;
  RETURN NEW;
END $$;
"""
BEFORE_IT_IS_KNOWN = """
CREATE TRIGGER broken BEFORE INSERT ON processes FOR EACH ROW EXECUTE FUNCTION break_once();
"""
AS_IT_IS_TAKEN = """
CREATE CONSTRAINT TRIGGER broken AFTER UPDATE ON tasks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.process LIKE 'queue:%') EXECUTE FUNCTION break_once();
"""
EXECUTORS = "SELECT executor_id FROM dbos.workflow_status WHERE workflow_uuid = '{}'"
WAITED_FOR = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
TAKEN = "SELECT taken, state FROM agent_runs"


class Far:
    """A node that reaches its database over a wire."""

    def __init__(self, node: Node, wire: Wire, url: str) -> None:
        self.node, self.wire, self.url = node, wire, url

    def cut_off(self, *, for_good: bool = False) -> None:
        self.wire.cut(for_good=for_good)
        until(lambda: ready(self.node) == CUT_OFF)

    def back(self) -> str:
        """Let it be heard again; gives the process that it is from then on."""
        self.wire.mend()
        until(lambda: ready(self.node) == READY)
        return member(self.url, "b")[0]

    def send(self) -> str:
        """Have the watcher say what time it is; gives the task."""
        sending = Sending(agent="watcher", text="what time is it?", waits=False)
        asked, begun = RPC1.send(sending), list[str]()

        def accepted() -> bool:
            with self.node.client as client:
                body = client.request(
                    asked.method, asked.path, json=asked.body, headers=asked.headers
                ).json()
            begun.extend([body["result"]["task"]["id"]] if "result" in body else [])
            return bool(begun)

        until(accepted, LONG)
        return begun[0]

    def completed(self, task_id: str) -> bool:
        now = state(self.node, task_id)
        assert now in {"submitted", "working", "completed"}, task(self.node, task_id)
        return now == "completed"


@contextmanager
def far(
    make_home: Callable[[], Cli], url: str, folder: Path, engine: str
) -> Generator[tuple[Far, Kitchen]]:
    kitchen = Kitchen(folder)
    kitchen.config = kitchen.config.replace('"inline"', f'"{engine}"')
    found = urlsplit(url)
    socket = next(Path(parse_qs(found.query)["host"][0]).glob(".s.PGSQL.*[0-9]"))
    with ExitStack() as held:
        wire = held.enter_context(Wire(str(socket)).running())
        through = f"postgresql://postgres@127.0.0.1:{wire.port}{found.path}"
        (node,) = homes(kitchen.furnish(make_home), url, "b", kitchen.config, {"b": through})
        held.callback(node.end)
        node.start()
        one = Far(node, wire, url)
        until(lambda: knows(node))
        begun = one.send()
        until(lambda: one.completed(begun), LONG)
        yield one, kitchen


@contextmanager
def watching(node: Node) -> Generator[None]:
    """Wait for an answer on a connection, for as long as there is one."""

    def ask() -> None:
        asked = {"message": "watch the kettle", "session": "direct"}
        with node.client as client, suppress(httpx.HTTPError):
            client.post("/api/agents/watcher/message", json=asked, timeout=LONG)

    thread = Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        thread.join(LONG)


def change(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())


@pytest.mark.parametrize("engine", ["inline", "dbos"])
def test_a_run_that_somebody_waits_for_goes_on_beside_the_beats(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path, engine: str
) -> None:
    with far(make_home, empty_postgres, tmp_path, engine) as (b, kitchen):
        before = member(b.url, "b")[0]
        with watching(b.node), kitchen.watched():
            b.cut_off(for_good=True)
            process = b.back()
            until(lambda: (1, "running") in rows(b.url, TAKEN), LONG)
        until(lambda: rows(b.url, f"{TAKEN} WHERE taken = 1") == [(1, "ended")], LONG)
        assert b.node.call("system_time")["outcome"] == "ok"
        assert before != process == member(b.url, "b")[0], "it was cut off once more"


def test_a_node_whose_first_word_is_lost_says_it_again(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path
) -> None:
    with far(make_home, empty_postgres, tmp_path, "inline") as (b, _):
        change(b.url, ONCE + BEFORE_IT_IS_KNOWN)
        b.cut_off()
        b.back()
        assert rows(b.url, "SELECT last_value > 1 FROM tries") == [(True,)], "nothing was lost"
        assert b.node.call("system_time")["outcome"] == "ok"


def test_a_node_that_drains_still_does_when_it_is_heard_again(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path
) -> None:
    with far(make_home, empty_postgres, tmp_path, "inline") as (b, _):
        with b.node.client as client:
            assert client.post("/api/nodes/b/drain", json={}).status_code == 200
        until(lambda: ready(b.node) == DRAINING)
        before = member(b.url, "b")[0]
        b.cut_off()
        b.wire.mend()
        until(lambda: member(b.url, "b")[0] != before)
        beat = "SELECT COUNT(*) FROM members WHERE beat_at > started_at"
        until(lambda: rows(b.url, beat) == [(1,)])  # it has looked since
        assert rows(b.url, "SELECT draining FROM members") == [(1,)]
        until(lambda: ready(b.node) == DRAINING)


def test_a_task_is_taken_from_its_queue_though_the_connection_broke_as_it_was_taken(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path
) -> None:
    with far(make_home, empty_postgres, tmp_path, "dbos") as (b, _):
        change(b.url, ONCE + AS_IT_IS_TAKEN)
        begun = b.send()
        until(lambda: b.completed(begun), LONG)
        assert rows(b.url, "SELECT last_value > 1 FROM tries") == [(True,)], "nothing was lost"


def test_what_is_taken_after_dead_connections_is_taken_by_the_process_that_it_is_now(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path
) -> None:
    """Its former part in the queues ends only when nobody waits for that any more."""
    with far(make_home, empty_postgres, tmp_path, "dbos") as (b, _):
        b.cut_off(for_good=True)
        process = b.back()
        begun = b.send()
        until(lambda: b.completed(begun), LONG)
        assert rows(b.url, EXECUTORS.format(begun)) == [(f"b/{process}",)]


def test_who_is_cut_off_while_its_queues_are_opened_takes_nothing_under_its_former_name(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path
) -> None:
    with far(make_home, empty_postgres, tmp_path, "dbos") as (b, _):
        b.node.end()
        with psycopg.connect(b.url) as held:
            held.execute("LOCK TABLE dbos.queues IN ACCESS EXCLUSIVE MODE")
            b.node.start()
            until(lambda: rows(b.url, WAITED_FOR), LONG)
            former = member(b.url, "b")[0]
            b.cut_off()
            process = b.back()
        begun = b.send()
        until(lambda: b.completed(begun), LONG)
        assert former != process
        assert rows(b.url, EXECUTORS.format(begun)) == [(f"b/{process}",)]
