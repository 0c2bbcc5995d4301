"""`openfang board list|show`: what agents have to do for whoever asks, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from openfang.cli.errors import FAILED
from openfang.cli.options import Json
from openfang.cli.output import entry, note, print_json
from openfang.cli.results import print_text, readable
from openfang.cli.session import on_home
from openfang.core.ids import Kind, tool_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Result

State = Literal["pending", "in_progress", "completed"]
_USUAL: Final = 20
_LIST: Final = tool_id(Kind.BUILTIN, "task_list")


def list_board(
    *,
    status: Annotated[State | None, Parameter(help="Only those that are so far.")] = None,
    limit: Annotated[int, Parameter(help="The newest so many; else 20.")] = _USUAL,
    as_json: Json = False,
) -> int:
    """List the tasks on your board, the newest first."""
    chosen = {"status": status} if status else {}
    return _show(_asked({**chosen, "limit": limit}), as_json=as_json)


def show_task(task_id: str, /, *, as_json: Json = False) -> int:
    """Show one task whole, with what came of it.

    Args:
        task_id: The id of the task.
    """
    result = _asked({"task_id": task_id})
    if as_json and not result.is_error:
        print_json(result.structured["tasks"][0])
        return 0
    print_text(readable(result.content, result.structured))
    return FAILED if result.is_error else 0


def _asked(arguments: Mapping[str, Any]) -> Result:
    return on_home(lambda session: session.call(_LIST, arguments))


def _show(result: Result, *, as_json: bool) -> int:
    found: Mapping[str, Any] = result.structured or {}
    if as_json:
        print_json(found)
    elif "tasks" not in found:  # too much to be shown as a list
        print_text(readable(result.content, found))
    else:
        _print(found["tasks"], found["total"])
    return FAILED if result.is_error else 0


def _print(tasks: list[dict[str, Any]], total: int) -> None:
    for task in tasks:
        entry(task["task_id"], task["title"], _line(task), *_result(task))
    if not tasks:
        note("There is no task on your board. Agents put them there: task_post")
    elif total > len(tasks):
        note(f"{len(tasks)} of {total}; more of them: openfang board list --limit 100")


def _line(task: Mapping[str, Any]) -> str:
    who = task.get("owner") or task.get("assigned_to") or "anybody"
    labels = f", labels {', '.join(task['labels'])}" if task["labels"] else ""
    return f"{task['status']}, {task['posted_by']} to {who}, posted at {task['posted_at']}{labels}"


def _result(task: Mapping[str, Any]) -> list[str]:
    return [task["result"]] if "result" in task else []
