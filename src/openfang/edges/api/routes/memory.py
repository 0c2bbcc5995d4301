"""`/api/memory`: what is remembered, in a space of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.memory import Wanted
from openfang.edges.api.endpoint import Endpoint
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.memory import MEMORIES_QUERY, SPACE_QUERY

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked

_ONE = "/api/memory/{key}"


async def _list(asked: Asked) -> Answer:
    return json_answer(await asked.session.memories(Wanted(**asked.query)))


async def _show(asked: Asked) -> Answer:
    return json_answer(await asked.session.memory(asked.path["key"], Wanted(**asked.query)))


async def _forget(asked: Asked) -> Answer:
    return json_answer(await asked.session.forget_memory(asked.path["key"], Wanted(**asked.query)))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/memory",
        name="list_memories",
        summary="List what is remembered, newest first, or find it by words, the best first.",
        handle=_list,
        query=MEMORIES_QUERY,
        answers={200: "Memories"},
        problems=(403, 404, 409),
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        name="show_memory",
        summary="Show one memory, whole.",
        handle=_show,
        query=SPACE_QUERY,
        answers={200: "Memory"},
        problems=(403, 404, 409),
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        name="forget_memory",
        summary="Forget one memory.",
        handle=_forget,
        query=SPACE_QUERY,
        answers={200: "Memory"},
        problems=(403, 404, 409),
    ),
)
