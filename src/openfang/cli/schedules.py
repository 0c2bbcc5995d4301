"""`openfang schedules list|show|create|delete|pause|resume|run`: what agents do at its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfang.cli.options import Json
from openfang.cli.output import entry, fields, note, print_json, say
from openfang.cli.session import on_home
from openfang.core.schedules import Overlap

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = ("id", "agent", "owner", "description", "message", "schedule", "cron", "timezone")
_MORE = ("overlap", "state", "reason", "next_run", "runs", "created_at")


def list_schedules(*, as_json: Json = False) -> None:
    """List schedules, the oldest first."""
    found = on_home(lambda session: session.schedules())
    if as_json:
        print_json({"schedules": list(found), "total": len(found)})
        return
    for one in found:
        entry(one["id"], one["description"], _line(one))
    if not found:
        note('There is none. Make one: openfang schedules create AGENT "daily at 9am" TEXT')


def _line(one: Mapping[str, Any]) -> str:
    last = one["last_run"]
    following = f"next at {one['next_run']}" if one["next_run"] else one["state"]
    before = f", last at {last['at']}: {_outcome(last)}" if last else ""
    return f"{one['agent']}, {one['schedule']} ({one['timezone']}), {following}{before}"


def _outcome(last: Mapping[str, Any]) -> str:
    return f"{last['outcome']}, {last['reason']}" if last["reason"] else last["outcome"]


def show_schedule(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Show a schedule: when it runs next, and how it went the last time.

    Args:
        schedule_id: The id of the schedule.
    """
    one = on_home(lambda session: session.schedule(schedule_id))
    if as_json:
        print_json(dict(one))
        return
    last: dict[str, Any] = one["last_run"] or {}
    skipped: dict[str, Any] = one["skipped"] or {}
    shown = {
        **{name: one[name] for name in (*_SHOWN, *_MORE)},
        "labels": ", ".join(one["labels"]),
        **{f"last run {name}": value for name, value in last.items() if name != "labels"},
        "last run labels": ", ".join(last.get("labels", ())),
        **{f"skipped {name}": value for name, value in skipped.items()},
    }
    fields({name.replace("_", " "): value for name, value in shown.items() if value})


def create(
    agent: str,
    schedule: str,
    description: str,
    /,
    *,
    timezone: Annotated[str, Parameter(help="Such as Europe/Berlin; else the node's.")] = "",
    message: Annotated[str, Parameter(help="What the agent is told; else the text.")] = "",
    overlap: Annotated[
        Overlap | None, Parameter(help="While the run before goes on: skip, or queue one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Have an agent told something at a later time, once or again and again.

    Args:
        agent: The agent that is told.
        schedule: When: "every 15 minutes", "weekdays at 9:30", "in 2 hours", or a cron expression.
        description: What it is for, and what the agent is told.
    """
    wanted = {
        "agent": agent,
        "schedule": schedule,
        "description": description,
        "timezone": timezone,
        "message": message,
        "overlap": overlap,
    }
    given = {name: value for name, value in wanted.items() if value}
    one = on_home(lambda session: session.create_schedule(given))
    if as_json:
        print_json(dict(one))
    else:
        say(f"{one['id']} is made; it runs first at {one['next_run']}.")


def delete(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Delete a schedule.

    Args:
        schedule_id: The id of the schedule.
    """
    _act(schedule_id, "delete", "is deleted", as_json=as_json)


def pause(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Let a schedule not run until it is resumed.

    Args:
        schedule_id: The id of the schedule.
    """
    _act(schedule_id, "pause", "is paused", as_json=as_json)


def resume(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Let a schedule run again.

    Args:
        schedule_id: The id of the schedule.
    """
    _act(schedule_id, "resume", "runs again", as_json=as_json)


def run(schedule_id: str, /, *, as_json: Json = False) -> None:
    """Let a schedule run now, whenever it is due; without a daemon, once one is started.

    Args:
        schedule_id: The id of the schedule.
    """
    _act(schedule_id, "run", "is due now", as_json=as_json)


def _act(schedule_id: str, act: str, done: str, *, as_json: bool) -> None:
    one = on_home(lambda session: session.change_schedule(schedule_id, act))
    if as_json:
        print_json(dict(one))
    else:
        say(f"{one['id']} {done}.")
