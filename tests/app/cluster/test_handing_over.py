"""A node that takes no more: what it has ended is ended, and what it has not others go on with."""

from __future__ import annotations

import asyncio
import queue
import threading
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
        called_off, *ended = [taken.get(timeout=SOON) for _ in range(RUNS)]
        called_off.cancel()
        handing = threading.Thread(target=flows.hand_over)
        handing.start()
        handing.join(0.5)  # who did not wait would be done by now
        for done in ended:
            done.set_result(None)
        handing.join(SOON)
    found = dict(asyncio.run(run(empty_postgres, STATUS))[0])
    assert found == {"SUCCESS": len(ended), "ENQUEUED": 1}
