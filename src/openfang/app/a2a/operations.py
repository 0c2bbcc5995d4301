"""Operations on tasks, each a call of its agent's: whose task it is, and what is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.calls import Role
from openfang.core.errors import Conflict, NotFound, OpenFangError
from openfang.core.results import Result, error_result, text_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.app.parts import Parts
    from openfang.core.calls import Admitted, Caller
    from openfang.core.tasks import Task
    from openfang.storage.tasks import TaskHead

_WATCHERS: Final = (Role.AUDITOR, Role.ADMIN)
_PEERS: Final = "a2a"
CANCEL: Final = "cancel"
_LIST: Final = "list"


async def operate(parts: Parts, admitted: Admitted) -> Result:
    """Do what an operation says. Its result is short: who asked reads the task itself."""
    call = admitted.call
    operation, task_id = call.tool.rpartition("/")[2], str(call.arguments.get("task", ""))
    if operation == _LIST:
        return text_result("listed")
    head = await parts.tasks.head(task_id)
    seen = head is not None and visible(head, call.caller, call.edge)
    if head is None or not seen or head.agent != admitted.tool.source:
        return _faulty(unknown(task_id))
    state = head.state
    try:
        if operation == CANCEL:
            check_own(head, call.caller, task_id)
            state = (await parts.tasks.cancel(task_id)).state
    except OpenFangError as error:
        return _faulty(error)
    return text_result(state.value, structured={"task": task_id, "state": state.value})


def check_own(task: TaskHead, caller: Caller, task_id: str) -> None:
    """Let nobody but an administrator end what is somebody else's."""
    if task.caller != caller.id and not caller.admin:
        raise Conflict(f"The task {task_id} is another's.", way_out="an administrator")


def visible(task: Task | TaskHead, caller: Caller, edge: str) -> bool:
    """Whether the task exists for this caller: its own do."""
    return task.caller == caller.id or sees_all(caller, edge)


def sees_all(caller: Caller, edge: str) -> bool:
    """Whether it watches the node; to a peer nobody's tasks but its own are shown."""
    return edge != _PEERS and caller.role in _WATCHERS


def unknown(task_id: str) -> NotFound:
    """There is no such task, or it is somebody else's: nobody learns which."""
    return NotFound(f"No task {task_id}.", way_out="openfang a2a tasks")


def _faulty(error: OpenFangError) -> Result:
    fault = {"code": error.code, "message": error.message, "way_out": error.way_out}
    return Result(content=error_result(error.message).content, is_error=True, fault=fault)


def raised(fault: Mapping[str, Any]) -> OpenFangError:
    """Make the error again that an operation ended with."""
    kinds = {kind.code: kind for kind in (NotFound, Conflict)}
    kind = kinds.get(str(fault.get("code")), OpenFangError)
    return kind(str(fault.get("message", "")), way_out=str(fault.get("way_out", "")))
