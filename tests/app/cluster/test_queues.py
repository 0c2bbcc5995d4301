"""Which queue a task is on, how many of each are worked on at once, and where there are none."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from dbos import DBOS
from tests.cli.conftest import make_home

from openfang.app.cluster.durable.queues import Queue, put, queue_of
from openfang.cli.errors import ERROR
from openfang.config.cluster import Cluster
from openfang.core.tasks import Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli

__all__ = ("make_home",)
pytestmark = pytest.mark.requirement("C13.3")
SAID = Cluster(runs=20, runs_per_key=5)


def test_agents_share_a_queue_that_is_bounded_for_each_node_and_each_key() -> None:
    assert queue_of("one", None, SAID) == queue_of("two", None, SAID)
    assert queue_of("one", None, SAID) == Queue(name="openfang", on_a_node=20, of_a_caller=5)


def test_an_agent_with_a_bound_has_a_queue_of_its_own() -> None:
    own = Queue(name="openfang/one", at_once=3, on_a_node=3, of_a_caller=3)
    assert queue_of("one", 3, SAID) == own


def test_the_operator_bounds_all_agents_and_a_manifest_says_otherwise() -> None:
    said = Cluster(runs=20, runs_per_key=5, runs_per_agent=8)
    own = Queue(name="openfang/one", at_once=8, on_a_node=8, of_a_caller=5)
    assert queue_of("one", None, said) == own
    assert queue_of("one", 2, said).at_once == 2


def test_the_id_of_a_task_is_that_of_its_workflow_and_its_caller_the_one_that_is_counted() -> None:
    task = Task(
        id="task_1", agent="one", caller="key:me", context="", session="", state=TaskState.WORKING
    )
    _, given = put(queue_of("one", None, SAID), task, {"text": "half \ud800"})
    assert given[:5] == ("task", "openfang", "task_1", "key:me", "task_1")
    assert "half" in given[5]


def test_what_dbos_keeps_to_itself_is_as_this_version_has_it() -> None:
    assert version("dbos").startswith("3.3.")
    assert [*inspect.signature(DBOS._recover_pending_workflows).parameters] == ["executor_ids"]  # pyright: ignore[reportPrivateUsage]


def test_queues_without_a_server_to_keep_them_are_refused_at_the_start(
    make_home: Callable[[], Cli],
) -> None:
    cli = make_home()
    cli.configure('[cluster]\nengine = "dbos"\n')
    refused = cli("start", "--listen", "127.0.0.1:0")
    assert refused.code == ERROR
    assert "queues are kept by a Postgres server" in refused.out + refused.err
