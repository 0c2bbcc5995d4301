"""A node that takes no more: what it has ended is ended, and what it has not others go on with."""

from __future__ import annotations

import asyncio
import queue
from concurrent.futures import Future
from typing import Any

import pytest
from tests.app.cluster.flows import SOON, Run, enqueue, taking
from tests.postgres import run

pytestmark = pytest.mark.requirement("C13.3")
RUNS = 20
STATUS = "SELECT status, COUNT(*) FROM dbos.workflow_status GROUP BY 1"


def test_what_a_node_has_ended_is_put_back_on_no_queue_when_it_takes_no_more(
    empty_postgres: str,
) -> None:
    taken = queue.Queue[Future[None]]()

    def take(_name: str, _recipe: dict[str, Any] | None) -> Future[None]:
        done = Future[None]()
        taken.put(done)
        return done

    with taking(empty_postgres, take) as flows:
        enqueue(empty_postgres, *(Run(id=f"run_{number}") for number in range(RUNS)))
        flows.bell.ring()
        works = [taken.get(timeout=SOON) for _ in range(RUNS)]
        for done in works[1:]:
            done.set_result(None)
        works[0].cancel()  # it was called off: others go on with it
        flows.hand_over()
    found = dict(asyncio.run(run(empty_postgres, STATUS))[0])
    assert found == {"SUCCESS": RUNS - 1, "ENQUEUED": 1}
