"""`/api/audit`: found, exported, queried and proven over HTTP, by who may read it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from openfang.storage import queries

if TYPE_CHECKING:
    from tests.edges.live import Live, Reply

pytestmark = pytest.mark.requirement("C13.1", "C13.3", "C18.1")


async def found(node: Live, query: str) -> list[dict[str, Any]]:
    body = (await node.get(f"/api/audit?{query}")).json
    assert body["total"] == len(body["records"])
    return body["records"]


async def test_records_are_found_by_everything_that_they_have(node: Live) -> None:
    user = await node.key("someone")
    mine = await node.call("mcp:demo:echo", key=user, context={"task_id": "task-1"})
    await node.call("mcp:demo:off")
    call, end = mine.json["call_id"], mine.json["audit"]["end"]
    counts = {
        "event=tool_invocation_end": 1,
        "tool=mcp:demo:echo": 3,
        "caller=key:someone": 3,
        f"call_id={call}": 3,
        "task_id=task-1": 3,
        "level=warning": 1,
        "text=Tool%20is%20disabled": 2,
        f"after={end}": 2,
        "limit=2": 2,
        "event=key_created": 2,
        "event=key_created&caller=key:admin": 1,
        "event=nothing": 0,
    }
    assert {query: len(await found(node, query)) for query in counts} == counts
    numbers = [record["audit_id"] for record in await found(node, "limit=3")]
    assert numbers == sorted(numbers)
    assert numbers[-1] == node.app.parts.writer.head.seq


@pytest.mark.requirement("C13.5")
async def test_the_whole_log_is_exported_as_lines(node: Live) -> None:
    for _ in range(400):
        await node.app.call("mcp:demo:echo", text="x" * 50)
    reply = await node.get("/api/audit/export")
    assert reply.headers["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert [line["audit_id"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(lines) == node.app.parts.writer.head.seq > 1_200
    later = await node.get(f"/api/audit/export?after={len(lines) - 2}")
    assert [json.loads(line) for line in later.body.splitlines()] == lines[-2:]


@pytest.mark.requirement("C13.2")
async def test_the_log_is_proven_over_http(node: Live) -> None:
    await node.call("mcp:demo:echo")
    body = (await node.get("/api/audit/verify")).json
    assert (body["intact"], body["findings"]) == (True, [])
    await node.post("/api/audit/sql", {"query": "DELETE FROM audit"})
    assert (await node.get("/api/audit/verify")).json["records"] >= body["records"]


async def sql(node: Live, query: str) -> Reply:
    return await node.post("/api/audit/sql", {"query": query})


async def test_queries_come_back_as_tables(node: Live) -> None:
    reply = await sql(node, "SELECT 1 AS a, 'b' AS b, NULL AS c; SELECT x'00ff' AS hash, 0.5 AS f")
    assert reply.json == {
        "tables": [
            {"columns": ["a", "b", "c"], "rows": [[1, "b", None]]},
            {"columns": ["hash", "f"], "rows": [["00ff", 0.5]]},
        ]
    }
    view = "SELECT event_type, COUNT(*) AS n FROM task_audits GROUP BY 1"
    assert (await sql(node, view)).json["tables"][0]["columns"] == ["event_type", "n"]


NUMBERS = "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n) SELECT"
NOT_RUN = [
    "DELETE FROM audit",
    "SELECT nothing FROM nowhere",
    "nonsense",
    "SELECT 1; DROP TABLE audit",
    "ATTACH DATABASE 'elsewhere.db' AS elsewhere",
    "PRAGMA journal_mode = DELETE",
    "SELECT load_extension('x')",
    "SELECT 1\0",
    "SELECT randomblob(100000000)",
    "SELECT CAST(x'ff' AS TEXT)",
    f"{NUMBERS} hex(zeroblob(5000)) FROM n",
]


async def test_a_query_that_cannot_be_run_is_the_callers_mistake(node: Live) -> None:
    for query in NOT_RUN:
        assert (query, (await sql(node, query)).told) == (query, (422, "query"))
    assert (await node.get("/api/audit/verify")).json["intact"]


SECRET = ("keys", "memory", "blobs", "approvals", "settings", "runs", "specs", "processes")


@pytest.mark.requirement("C18.3")
async def test_a_query_reads_the_log_and_nothing_else(node: Live) -> None:
    auditor = await node.key("reader", role="auditor")
    for key in (auditor, ""):
        for table in SECRET:
            for what in (f"* FROM {table}", f"COUNT(*) FROM main.{table.upper()}"):
                query = f"SELECT {what}"
                reply = await node.post("/api/audit/sql", {"query": query}, key=key)
                assert (query, reply.told) == (query, (422, "query"))
        for query in (
            "SELECT payload FROM audit UNION SELECT CAST(seq AS TEXT) FROM checkpoints",
            "WITH mine AS (SELECT event_type FROM task_audits) SELECT COUNT(*) FROM mine",
            "SELECT name FROM sqlite_master",
        ):
            reply = await node.post("/api/audit/sql", {"query": query}, key=key)
            assert (query, reply.status) == (query, 200)


async def test_an_answer_has_so_many_rows(node: Live) -> None:
    rows = (await sql(node, f"{NUMBERS} x FROM n")).json["tables"][0]["rows"]
    assert (len(rows), rows[-1]) == (10_000, [10_000])


@pytest.mark.requirement("C12.2")
async def test_a_query_without_end_is_ended_and_keeps_nobody_out(
    node: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "QUERY_SECONDS", 0.3)
    told: list[tuple[int, str]] = []

    async def ask() -> None:
        told.append((await sql(node, f"{NUMBERS} max(x) FROM n")).told)

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(ask)
        assert (await node.call("mcp:demo:echo")).status == 200
    assert told == [(422, "query")] * 4
    assert (await sql(node, "SELECT 1")).status == 200
    assert threading.active_count() < 20
