"""`/api/usage`: what was used up, by agent, key, day or chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.usage import UsageQuery, report_body
from openfang.edges.api.endpoint import Endpoint
from openfang.edges.api.exchange import json_answer
from openfang.edges.api.usage import USAGE_QUERY

if TYPE_CHECKING:
    from openfang.edges.api.exchange import Answer, Asked


async def _usage(asked: Asked) -> Answer:
    return json_answer(report_body(await asked.session.usage(UsageQuery(**asked.query))))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/usage",
        name="show_usage",
        summary="Add up tokens, money, calls and schema bytes: one's own, or all for who watches.",
        handle=_usage,
        work="message",
        query=USAGE_QUERY,
        answers={200: "UsageReport"},
    ),
)
