"""`openfang a2a tasks|watch|cancel`: the work that agents of this node have."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from openfang.cli.a2a import show_result
from openfang.cli.options import Json
from openfang.cli.output import entry, note, one_line, print_json, print_line, say
from openfang.cli.session import on_home
from openfang.cli.stories import Story, code_of, is_spoken, task_of
from openfang.core.ids import Kind, tool_id
from openfang.core.task_wire import seen_body, seen_name, task_body, tasks_body
from openfang.core.tasks import MOST_TASKS, TaskFilter, TaskPage, TaskState
from openfang.core.wire import moment

if TYPE_CHECKING:
    from openfang.core.results import Result
    from openfang.core.session import Session
    from openfang.core.tasks import Task

State = Literal[
    "submitted",
    "working",
    "input-required",
    "auth-required",
    "completed",
    "canceled",
    "failed",
    "rejected",
]
_SHOWN: Final = 100


def list_tasks(
    *,
    agent: Annotated[str, Parameter(help="Only those of this agent.")] = "",
    context: Annotated[str, Parameter(help="Only those of this conversation.")] = "",
    state: Annotated[State | None, Parameter(help="Only those in this state.")] = None,
    everything: Annotated[bool, Parameter(name="--all", help="Not the last 50 only.")] = False,
    as_json: Json = False,
) -> None:
    """List tasks, the last changed first."""
    chosen = TaskState(state) if state else None
    wanted = TaskFilter(agent=agent, context=context, state=chosen)

    async def work(home: Session) -> TaskPage:
        return await (_every(home, wanted) if everything else home.tasks(wanted))

    found = on_home(work)
    if as_json:
        print_json(tasks_body(found))
        return
    for task in found.tasks:
        entry(task.id, _title(task), _line(task))
    if not found.tasks:
        note("There is no task. Begin one: openfang a2a send AGENT MESSAGE")
    elif found.after:
        note(f"{len(found.tasks)} of {found.total}; the others as well: openfang a2a tasks --all")


async def _every(home: Session, wanted: TaskFilter) -> TaskPage:
    page = await home.tasks(replace(wanted, limit=MOST_TASKS))
    found = list(page.tasks)
    while page.after:
        page = await home.tasks(replace(wanted, limit=MOST_TASKS, after=page.after))
        found += page.tasks
    return TaskPage(tasks=found, total=page.total)


def _title(task: Task) -> str:
    text = one_line(task.history[0].text) if task.history else ""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _line(task: Task) -> str:
    named = f" ({task.context})" if task.context != task.session else ""
    who = f"{task.caller} to {task.agent}{named}"
    return f"{task.state.value}, {who}, last change at {moment(task.changed_at)}"


def watch(task_id: str, /, *, as_json: Json = False) -> int:
    """Show a task and all that happens to it, until it has ended. Ctrl-C does not end it.

    Args:
        task_id: The id of the task.
    """
    story = Story(silent=as_json)

    async def work(home: Session) -> Task | None:
        task = None
        async with aclosing(home.watch_task(task_id)) as watched:
            async for seen in watched:
                task = task_of(seen)
                story.tell(seen)
                if task.state.waiting and not is_spoken(seen):
                    story.hint(task)
                if as_json:
                    print_line({"event": seen_name(seen), "data": seen_body(seen)})
        return task

    last = on_home(work)
    return 0 if last is None else code_of(last)


def cancel(
    task_id: str,
    /,
    *,
    peer: Annotated[str, Parameter(help="The agent elsewhere that has it.")] = "",
    as_json: Json = False,
) -> int:
    """End a task, and the work on it.

    Args:
        task_id: The id of the task.
    """
    if peer:
        return _cancel_elsewhere(peer.removeprefix("a2a:"), task_id, as_json=as_json)
    ended = on_home(lambda home: home.cancel_task(task_id))
    if as_json:
        print_json(task_body(ended))
    else:
        say(f"{ended.id} is {ended.state.value}.")
    return 0


def _cancel_elsewhere(peer: str, task_id: str, *, as_json: bool) -> int:
    async def work(home: Session) -> Result:
        await home.peers()  # a command of its own has to find them first
        return await home.call(tool_id(Kind.A2A, peer), {"task": task_id, "cancel": True})

    return show_result(on_home(work), peer, as_json=as_json)
