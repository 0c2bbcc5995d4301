"""Tasks on the queues of several nodes: any node works on them, and the next one goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cluster.kitchen import Kitchen, each, kitchen
from tests.faults.dialects import state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C13.3")


def test_any_node_works_on_a_task_and_every_node_tells_its_end(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    with kitchen(make_home, empty_postgres, "ab") as kettle:
        tasks = [kettle.send(node, "clock") for node, _ in zip(each("ab"), range(8), strict=False)]
        for node in "ab":
            found = [kettle.until(node, task, agent="clock") for task in tasks]
            assert {state_of(one) for one in found} == {"completed"}, found
        flows = kettle.read("SELECT workflow_uuid, status, executor_id FROM dbos.workflow_status")
    assert {one[0] for one in flows} == set(tasks)
    assert {one[1] for one in flows} == {"SUCCESS"}, flows
