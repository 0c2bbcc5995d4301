"""When a node looks at its queues: rarely while nothing happens, at once when something does."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.app.cluster.flows import LONG, SOON, WORKER, Run, enqueue, taking

from openfang.app.cluster.durable.bell import AWAKE_SECONDS, Bell

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = pytest.mark.requirement("C13.3")


@contextmanager
def worker(wait: Callable[[], object]) -> Generator[threading.Thread]:
    """A thread that waits between two looks, as one of DBOS does."""
    thread = threading.Thread(target=wait, name=WORKER, daemon=True)
    thread.start()
    yield thread
    thread.join(SOON)
    assert not thread.is_alive()


def test_who_waits_for_the_next_look_is_woken_by_the_first_ring() -> None:
    bell, stop, told = Bell(longest=LONG), threading.Event(), list[bool]()
    bell.hang([stop])
    with worker(lambda: told.append(stop.wait(LONG))) as thread:
        thread.join(0.05)
        assert thread.is_alive()
        bell.ring()
    assert told == [False]


def test_it_is_looked_ten_times_as_often_while_something_happens() -> None:
    bell, stop = Bell(), threading.Event()
    bell.ring()
    began = time.monotonic()
    with worker(lambda: bell.wait(stop, AWAKE_SECONDS)):
        pass
    assert AWAKE_SECONDS / 10 <= time.monotonic() - began < AWAKE_SECONDS


@pytest.mark.parametrize("rings", [0, 1])
def test_who_has_collided_with_other_nodes_waits_no_longer_than_others(rings: int) -> None:
    bell, stop = Bell(longest=0.1), threading.Event()
    for _ in range(rings):
        bell.ring()
    with worker(lambda: bell.wait(stop, LONG)):  # it joins the thread, for less than that
        pass


def test_who_waits_for_something_else_is_not_woken_but_to_stop() -> None:
    bell, stop, told = Bell(), threading.Event(), list[bool]()
    bell.hang([stop])
    thread = threading.Thread(target=lambda: told.append(stop.wait(LONG)), daemon=True)
    thread.start()
    bell.ring()
    thread.join(0.05)
    assert thread.is_alive()
    stop.set()
    bell.ring()
    thread.join(SOON)
    assert told == [True]


def test_what_is_put_on_a_queue_is_taken_at_once_by_a_node_that_looks_once_a_minute(
    empty_postgres: str,
) -> None:
    taken = threading.Event()

    def take(run: str, recipe: dict[str, Any] | None) -> Future[None]:
        assert (run, recipe) == ("run_1", None)
        taken.set()
        done = Future[None]()
        done.set_result(None)
        return done

    with taking(empty_postgres, take) as flows:
        enqueue(empty_postgres, Run(id="run_1"))
        flows.bell.ring()
        assert taken.wait(SOON)
