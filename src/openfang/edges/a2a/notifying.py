"""A task as a push notification has it, in the words of each dialect that is notified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from openfang.edges.a2a.versions import V03
from openfang.edges.a2a.written import event_json
from openfang.edges.a2a.written03 import task_json03

if TYPE_CHECKING:
    from openfang.core.tasks import Task


def write_notice(task: Task, dialect: str) -> bytes:
    """Write it: 0.3 is told the task, later ones what a stream would say."""
    return orjson.dumps(task_json03(task) if dialect == V03 else event_json(task))
