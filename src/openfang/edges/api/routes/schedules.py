"""`/api/schedules`: what agents are told at a later time. Another caller's do not exist."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from openfang.edges.api.endpoint import BY_PIPELINE, Endpoint
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.schedules import WANTED

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked

_ALL: Final = "/api/schedules"
_ONE: Final = f"{_ALL}/{{id}}"


async def _list(asked: Asked) -> Answer:
    found = await asked.session.schedules()
    return json_answer({"schedules": list(found), "total": len(found)})


async def _show(asked: Asked) -> Answer:
    return json_answer(await asked.session.schedule(asked.path["id"]))


async def _create(asked: Asked) -> Answer:
    return json_answer(await asked.session.create_schedule(asked.body), 201)


async def _act(act: str, asked: Asked) -> Answer:
    return json_answer(await asked.session.change_schedule(asked.path["id"], act))


def _acting(act: str, summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"{_ONE}/{act}",
        name=f"{act}_schedule",
        summary=summary,
        handle=partial(_act, act),
        body={"type": "object", "additionalProperties": False},
        answers={200: "Schedule"},
        problems=(404, 409, 422),
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_ALL,
        name="list_schedules",
        summary="List schedules, oldest first: one's own, or all for who watches.",
        handle=_list,
        answers={200: "Schedules"},
    ),
    Endpoint(
        method="POST",
        path=_ALL,
        name="create_schedule",
        summary="Have an agent told something at a later time, as `schedule_create` does.",
        handle=_create,
        work=BY_PIPELINE,
        body=WANTED,
        answers={201: "Schedule", 202: "Problem"},
        problems=(403, 404, 422),
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        name="show_schedule",
        summary="Show one: its next run, and how the last one went.",
        handle=_show,
        answers={200: "Schedule"},
        problems=(404,),
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        name="delete_schedule",
        summary="Delete one.",
        handle=partial(_act, "delete"),
        answers={200: "Schedule"},
        problems=(404, 409),
    ),
    _acting("pause", "Let one not run until it is resumed."),
    _acting("resume", "Let one run again."),
    _acting("run", "Let one run now, whenever it is due."),
)
