"""Which queue a task or a run is on, and how many of each may be worked on at once. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from openfang.core.values import value
from openfang.storage.task_bodies import readable

if TYPE_CHECKING:
    from openfang.config.cluster import Cluster
    from openfang.core.tasks import Task
    from openfang.pipeline.tasks.engine import Left, Recipe
    from openfang.storage.tasks import Statement

LOOK_SECONDS: Final = 1.0
"""How often a node at which nothing happens looks whether there is something to take."""
_SHARED: Final = "openfang"
TASK: Final = "task"
RUN: Final = "run"
"""The two kinds of workflows: the work on a task, and a run whose process is gone."""
_ENQUEUE: Final = (
    "SELECT dbos.enqueue_workflow(application_name => 'openfang', "
    "workflow_name => CAST(? AS TEXT), queue_name => CAST(? AS TEXT), "
    "workflow_id => CAST(? AS TEXT), queue_partition_key => CAST(? AS TEXT), "
    "positional_args => ARRAY[to_json(CAST(? AS TEXT)), CAST(CAST(? AS TEXT) AS JSON)])"
)


@value
class Queue:
    """A queue of all nodes: bounds of the whole, of one node and of one caller."""

    name: str
    at_once: int | None = None
    on_a_node: int | None = None
    of_a_caller: int | None = None
    seconds: float = LOOK_SECONDS


def queue_of(agent: str, bound: int | None, said: Cluster) -> Queue:
    """Give the queue of an agent: all share one, but for those that have a bound of their own."""
    most = said.runs_per_agent if bound is None else bound
    if not most:
        return Queue(name=_SHARED, on_a_node=said.runs, of_a_caller=said.runs_per_key)
    return Queue(
        name=f"{_SHARED}/{agent}",
        at_once=most,
        on_a_node=min(most, said.runs),
        of_a_caller=min(most, said.runs_per_key),
    )


def put(queue: Queue, task: Task, recipe: Recipe) -> Statement:
    """Put a task on a queue. Under its id there is one workflow, however often this is done."""
    return _ENQUEUE, (TASK, queue.name, task.id, task.caller, task.id, _written(recipe))


def put_run(queue: Queue, run: Left) -> Statement:
    """Put a run on a queue, once; what it was about its journal says."""
    return _ENQUEUE, (RUN, queue.name, run.id, run.caller, run.id, "null")


def _written(recipe: Recipe) -> str:
    try:
        return orjson.dumps(recipe).decode()
    except TypeError:  # half a character: JSON has no word for it
        import json  # noqa: PLC0415 - as good as never

        return readable(json.dumps(recipe, ensure_ascii=False))
