"""Ten thousand messages, wrong in every way: the right error each time, and nothing is left."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.edges.live import live
from tests.edges.mcp.odd_messages import Odd
from tests.edges.mcp.talking import Session, call, edge_of, memory, new_edge, request
from tests.edges.mcp.teller import Teller

if TYPE_CHECKING:
    from pathlib import Path

    from tests.edges.live import Live
    from tests.host.wire import Answer

pytestmark = [pytest.mark.requirement("C4.4", "C4.6", "C12.2"), pytest.mark.timeout(120)]

MESSAGES = int(os.environ.get("FUZZ_REQUESTS", "10000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
AT_ONCE = 10
CONNECTIONS = 4
HANGS_AFTER = 20.0
GROWTH = 24_000_000
# The status of a problem, and those of the errors that a message can be answered with.
PROBLEMS = {400, 401, 403, 404, 405, 415, 421, 429}
ERRORS = {
    200: {-32600, -32601, -32602, -32603, -32002, -32800},
    400: {-32600, -32602, -32700, -32020, -32022},
    404: {-32600, -32601},
}


def judge(answer: Answer) -> int:
    """See that an answer is one of those that there are; give the code of an error."""
    kind = answer.headers["content-type"]
    if kind == "application/problem+json":
        assert answer.status in PROBLEMS, answer
        assert answer.problem["status"] == answer.status
        return 0
    if kind == "text/event-stream":
        assert answer.status == 200, answer
        return 0
    if not answer.body:
        assert answer.status in {200, 202}, answer
        return 0
    return _code(answer)


def _code(answer: Answer) -> int:
    message: Any = json.loads(answer.body)
    assert message["jsonrpc"] == "2.0"
    assert "id" in message
    if "result" in message:
        assert answer.status == 200, answer
        return 0
    code = message["error"]["code"]
    assert code in ERRORS.get(answer.status, set()), answer
    return code


async def _attack(node: Live, odd: Odd, codes: set[int], count: int) -> None:
    client = await node.client()
    for _ in range(count // AT_ONCE):
        sent = [odd.wire() for _ in range(AT_ONCE)]
        try:
            await client.send(b"".join(sent))
            for _ in sent:
                with anyio.fail_after(HANGS_AFTER):
                    answer = await client.answer()
                codes.add(judge(answer))
                if session := answer.headers.get("mcp-session-id"):
                    odd.sessions.append(session)
        except BaseException as error:
            error.add_note(f"sent: {sent!r:.9000}")
            raise
    client.hang_up()


async def attack(node: Live, odd: Odd, count: int) -> set[int]:
    codes: set[int] = set()
    async with anyio.create_task_group() as group:
        for _ in range(CONNECTIONS):
            group.start_soon(_attack, node, odd, codes, count // CONNECTIONS)
    return codes


async def test_whatever_is_said_is_answered_and_nothing_is_left_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "openfang")
    async with live(tmp_path / "home", sources=[Teller()]) as node:
        odd = Odd(Random(SEED), node.admin)  # noqa: S311 - so that the same messages come again
        new_edge(node, beat=0.2)  # so that whatever is left waiting is heard of
        await attack(node, odd, MESSAGES // 10)
        await settled(node, odd)
        before, tasks = memory(), len(asyncio.all_tasks())
        codes = await attack(node, odd, MESSAGES - MESSAGES // 10)
        assert codes >= {0, -32700, -32600, -32601, -32602, -32020, -32022}
        assert (await call(node, "system_time")).json["result"]["content"]
        await settled(node, odd)
        assert len(asyncio.all_tasks()) <= tasks
        assert memory() - before < GROWTH
    assert caplog.records == []


async def settled(node: Live, odd: Odd) -> None:
    """End the sessions that were begun: then there are none."""
    for one in set(odd.sessions):
        await Session(node, one, "2025-11-25").end()
    odd.sessions.clear()
    assert len(edge_of(node).sessions) == 0
    assert len(edge_of(node).staying) == 0
    await node.post("/mcp", request("ping"))
    gc.collect()
