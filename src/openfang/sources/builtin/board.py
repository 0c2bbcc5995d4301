"""`task_post`, `task_claim`, `task_complete`, `task_list`: work that agents leave to each other.

Who began the chain has a board, and all that work on their behalf share it. A task keeps the labels
it was posted with, and those of its result: who reads it is judged by them, as with a message to
an agent. So to post is no effect of its own to the flow rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.errors import Conflict, HomeError, NotFound, SourceFailed
from openfang.core.ids import Kind, new_id, tool_id
from openfang.core.labels import Labels
from openfang.core.results import text_result
from openfang.core.tools import Risk
from openfang.core.values import dataclass
from openfang.core.wire import moment
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema
from openfang.storage import board
from openfang.storage.board import MOST_OPEN, Change, Posting, Status, Viewer
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.core.calls import Admitted, Call, Caller
    from openfang.core.results import Result
    from openfang.storage.board import BoardStore, Statement
    from openfang.storage.ports import Writes

MOST_LISTED: Final = 100
_USUALLY_LISTED: Final = 20
_SHOWN: Final = 500
_SECOND: Final = 1_000_000_000
_ID = {"type": "string", "minLength": 1, "maxLength": 64, "description": "The id of the task."}
_CHANGES: Any = {"risk": Risk.LOW, "tags": frozenset({"database.write"})}
_POST = builtin_tool(
    "task_post",
    "Put a task on the board, for another agent or for whoever claims it first.",
    object_schema(
        ["title", "description"],
        title={"type": "string", "minLength": 1, "maxLength": 200},
        description={
            "type": "string",
            "maxLength": 20_000,
            "description": "All that whoever does it has to know.",
        },
        assigned_to={
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "The name of the agent that is to do it; else anybody may.",
        },
        priority={
            "type": "integer",
            "minimum": 0,
            "maximum": 9,
            "description": "9 is claimed first; 0 unless you say so.",
        },
    ),
    **_CHANGES,
)
_CLAIM = builtin_tool(
    "task_claim",
    "Take a task from the board: the next one for you or for anybody, or the one you name.",
    object_schema(task_id=_ID),
    polls=True,
    **_CHANGES,
)
_COMPLETE = builtin_tool(
    "task_complete",
    "Say what came of a task that you have claimed.",
    object_schema(
        ["task_id", "result"], task_id=_ID, result={"type": "string", "maxLength": 40_000}
    ),
    **_CHANGES,
)
_LIST = builtin_tool(
    "task_list",
    "List the tasks on the board and their results, the newest first, or show one whole.",
    object_schema(
        status={"type": "string", "enum": [status.value for status in Status]},
        limit={"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
        task_id=_ID,
    ),
    risk=Risk.LOW,
    tags=frozenset({"database.read"}),
    idempotent=True,
    polls=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSettings:
    """How long a claim holds, in seconds, and whether a caller may call an agent of this name."""

    claim_secs: float
    reaches: Callable[[Caller, str], Awaitable[bool]]
    now: Callable[[], int]


def board_tools(store: BoardStore, writer: Writes, settings: BoardSettings) -> Sequence[Builtin]:
    """The family of the task board."""
    family = _Board(store, writer, settings)
    return [
        Builtin(_POST, family.post),
        Builtin(_CLAIM, family.claim),
        Builtin(_COMPLETE, family.complete),
        Builtin(_LIST, family.list),
    ]


@dataclass(frozen=True, slots=True)
class _Board:
    rows: BoardStore
    writer: Writes
    settings: BoardSettings

    async def post(self, admitted: Admitted) -> Result:
        call, asked, change = admitted.call, admitted.call.arguments, self._change(admitted.call)
        posting = Posting(
            id=new_id("todo"),
            space=call.root,
            title=asked["title"],
            description=asked["description"],
            assigned_to=await self._assignee(call, asked.get("assigned_to", "")),
            priority=asked.get("priority", 0),
            posted_by=call.caller.id,
            posted_at=change.now,
            labels=admitted.labels,
            changed_by=call.id,
        )
        if await self._made(change, board.post(posting)) is None:
            raise Conflict(
                f"The board of {call.root} has {MOST_OPEN} open tasks, which is all that it holds.",
                way_out="task_claim and task_complete some first",
            )
        return text_result(f"Posted {posting.id}.", structured=_body(posting))

    async def claim(self, admitted: Admitted) -> Result:
        change, wanted = self._change(admitted.call), admitted.call.arguments.get("task_id")
        until = change.now + int(self.settings.claim_secs * _SECOND)
        if wanted is None:
            taken = await self._made(change, board.claim_next(change, until))
        else:
            taken = await self._made(change, board.claim(change, wanted, until))
        if taken is None and wanted is not None:
            raise await self._why_not(change.viewer, wanted)
        if taken is None:
            return text_result("There is no task to claim.", structured={"task_id": None})
        return text_result(_whole(taken), labels=taken.labels, structured=_body(taken))

    async def complete(self, admitted: Admitted) -> Result:
        change, asked = self._change(admitted.call), admitted.call.arguments
        task = asked["task_id"]
        kept = board.complete(change, task, asked["result"], admitted.labels)
        done = await self._made(change, kept, board.drop_oldest(change.viewer.space))
        if done is None:
            raise await self._why_not(change.viewer, task)
        return text_result(f"Completed {task}.", structured={"task_id": task})

    async def list(self, admitted: Admitted) -> Result:
        asked, viewer = admitted.call.arguments, _viewer(admitted.call)
        if "task_id" in asked:
            return await self._show(viewer, asked["task_id"])
        status = Status(asked["status"]) if "status" in asked else None
        limit = asked.get("limit", _USUALLY_LISTED)
        found, total = await self.rows.page(viewer, status, limit)
        lines = [_line(one) for one in found] or ["There is no such task."]
        if total > len(found):
            lines.append(f"[{len(found)} of {total}]")
        listed = {"tasks": [_body(one, most=_SHOWN) for one in found], "total": total}
        return text_result("\n".join(lines), labels=_labels(found), structured=listed)

    async def _show(self, viewer: Viewer, task: str) -> Result:
        found = await self.rows.find(viewer, task)
        if found is None:
            raise _unknown(task)
        shown = {"tasks": [_body(found)], "total": 1}
        return text_result(_whole(found), labels=found.labels, structured=shown)

    async def _assignee(self, call: Call, name: str) -> str:
        """Whom it is for, by the id they call with: oneself, who began, or a reachable agent."""
        if name in {"", call.root}:
            return name
        plain = name.removeprefix(f"{Kind.AGENT.value}:")
        agent = tool_id(Kind.AGENT, plain)
        if agent == call.caller.id or await self.settings.reaches(call.caller, plain):
            return agent
        raise NotFound(
            f"There is no agent {name} that {call.caller.id} may give work to.",
            way_out="agent_list names those there are, or leave assigned_to out",
        )

    async def _why_not(self, viewer: Viewer, task: str) -> NotFound | Conflict:
        found = await self.rows.find(viewer, task)
        if found is None:
            return _unknown(task)
        match found.status:
            case Status.COMPLETED:
                return Conflict(f"{task} is completed already.", way_out="task_list shows it")
            case Status.IN_PROGRESS:
                return Conflict(
                    f"{task} is {found.owner}'s until {moment(found.claimed_until)}.",
                    way_out="task_claim without task_id takes another",
                )
            case Status.PENDING if found.assigned_to in {"", viewer.id}:
                return Conflict(f"{task} is nobody's yet.", way_out="task_claim it first")
            case Status.PENDING:
                return Conflict(
                    f"{task} is for {found.assigned_to}.",
                    way_out="task_claim without task_id takes another",
                )

    def _change(self, call: Call) -> Change:
        return Change(viewer=_viewer(call), call=call.id, now=self.settings.now())

    async def _made(self, change: Change, *statements: Statement) -> Posting | None:
        """Write, and read what was changed by it; none if that was not allowed."""
        try:
            await self.writer.write(Unit(statements=statements))
        except HomeError as error:
            raise SourceFailed(error.message, way_out=error.way_out) from error
        return await self.rows.changed(change.viewer.space, change.call)


def _viewer(call: Call) -> Viewer:
    return Viewer(id=call.caller.id, space=call.root)


def _unknown(task: str) -> NotFound:
    return NotFound(f"There is no task {task} on the board.", way_out="task_list")


def _labels(found: Sequence[Posting]) -> Labels:
    labels = Labels.NONE
    for one in found:
        labels |= one.labels
    return labels


def _line(posting: Posting) -> str:
    who = posting.owner or posting.assigned_to
    named = f", {who}" if who else ""
    came = f": {_cut(posting.result, _SHOWN)}" if posting.result else ""
    return f"{posting.id} {posting.status.value}{named}: {posting.title}{came}"


def _whole(posting: Posting) -> str:
    parts = (_line(posting), posting.description)
    return "\n\n".join(part for part in parts if part)


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    return f"{text[:most]}... [{len(text)} characters: task_list with its task_id shows them all]"


def _body(posting: Posting, most: int | None = None) -> dict[str, Any]:
    """A task as JSON; what is empty is left out, and long texts are cut if there is a `most`."""
    known = {
        "task_id": posting.id,
        "title": posting.title,
        "description": _cut(posting.description, most),
        "status": posting.status.value,
        "priority": posting.priority,
        "assigned_to": posting.assigned_to,
        "posted_by": posting.posted_by,
        "posted_at": moment(posting.posted_at),
        "owner": posting.owner,
        "claimed_until": moment(posting.claimed_until) if posting.owner else "",
        "result": _cut(posting.result, most),
        "completed_at": moment(posting.completed_at) if posting.completed_at else "",
        "labels": posting.labels.names,
    }
    return {key: value for key, value in known.items() if value != ""}
