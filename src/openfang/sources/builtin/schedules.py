"""`schedule_create`, `schedule_list`, `schedule_delete`: what an agent does at a later time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from openfang.core.labels import Labels
from openfang.core.results import text_result
from openfang.core.schedules import (
    LONGEST_DESCRIPTION,
    LONGEST_MESSAGE,
    LONGEST_SCHEDULE,
    LONGEST_ZONE,
    OVERLAPS,
)
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.core.results import Result


class Schedules(Protocol):
    """What can be done with schedules; each is told as people read it."""

    async def create(self, admitted: Admitted) -> Mapping[str, Any]:
        """Make one as the arguments say."""
        ...

    async def list(self, admitted: Admitted) -> Sequence[Mapping[str, Any]]:
        """List those of whoever calls."""
        ...

    async def delete(self, admitted: Admitted) -> Mapping[str, Any]:
        """Delete one of those."""
        ...


_CREATE = builtin_tool(
    "schedule_create",
    "Have an agent told something at a later time, once or again and again.",
    object_schema(
        ["description", "schedule"],
        description={
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_DESCRIPTION,
            "description": "What it is for; also what the agent is told, unless `message` is.",
        },
        schedule={
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_SCHEDULE,
            "description": "When: `every 15 minutes`, `weekdays at 9:30`, `in 2 hours`, "
            "`at 2026-12-01T09:00`, or a cron expression of five fields.",
        },
        agent={
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "Which agent is told; else the one that calls.",
        },
        timezone={
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_ZONE,
            "description": "Such as Europe/Berlin; else the node's.",
        },
        message={
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_MESSAGE,
            "description": "What the agent is told.",
        },
        overlap={
            "enum": list(OVERLAPS),
            "description": "If the run before is still under way: leave it out, or wait.",
        },
    ),
    risk=Risk.MEDIUM,
    tags=frozenset({"database.write"}),
    sink=Sink(effect=Effect.LOCAL_WRITE, targets=("schedule", "message")),
)
_LIST = builtin_tool(
    "schedule_list",
    "List your schedules: when each runs next, and how it went the last time.",
    object_schema(),
    risk=Risk.LOW,
    tags=frozenset({"database.read"}),
    idempotent=True,
    polls=True,
)
_DELETE = builtin_tool(
    "schedule_delete",
    "Delete a schedule of yours, by its id.",
    object_schema(["id"], id={"type": "string", "minLength": 1, "maxLength": 64}),
    risk=Risk.MEDIUM,
    tags=frozenset({"database.write"}),
    sink=Sink(effect=Effect.LOCAL_WRITE, targets=("id",)),
    idempotent=True,
)


def schedule_tools(book: Schedules) -> Sequence[Builtin]:
    """The family of schedules."""
    family = _Schedules(book)
    return [
        Builtin(_CREATE, family.create),
        Builtin(_LIST, family.list),
        Builtin(_DELETE, family.delete),
    ]


@dataclass(frozen=True, slots=True)
class _Schedules:
    book: Schedules

    async def create(self, admitted: Admitted) -> Result:
        made = await self.book.create(admitted)
        text = f"Created {made['id']}: {_line(made)}"
        return text_result(text, structured=dict(made))

    async def list(self, admitted: Admitted) -> Result:
        found = await self.book.list(admitted)
        text = "\n".join(f"{one['id']}: {_line(one)}" for one in found)
        shown = {"schedules": [dict(one) for one in found]}
        labels = Labels.of({name for one in found for name in _labels(one)})
        return text_result(text or "There is no schedule.", labels=labels, structured=shown)

    async def delete(self, admitted: Admitted) -> Result:
        gone = await self.book.delete(admitted)
        return text_result(f"Deleted {gone['id']}.", structured={"id": gone["id"]})


def _labels(one: Mapping[str, Any]) -> Sequence[str]:
    """Of a schedule, and of how it went: why a run failed may be another's words."""
    last: Mapping[str, Any] | None = one["last_run"]
    return [*one["labels"], *(last["labels"] if last else ())]


def _line(one: Mapping[str, Any]) -> str:
    last, following = one["last_run"], one["next_run"]
    told = [f"{one['schedule']} ({one['timezone']}), {one['agent']}: {one['description']}"]
    told.append(f"next at {following}" if following else one["state"])
    if last:
        why = f", {last['reason']}" if last["reason"] else ""
        told.append(f"last at {last['at']}: {last['outcome']}{why}")
    return "; ".join(told)
