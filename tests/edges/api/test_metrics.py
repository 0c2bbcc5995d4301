"""`/metrics`: for who may read the log; the numbers move with what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families as prometheus
from tests.edges.sse import listening

from openfang.app.lifespan import sign_head
from openfang.app.logs.log import Logs, open_logs

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C14.3", "C12.1")


async def numbers(node: Live, key: str = "") -> dict[tuple[str, ...], float]:
    """Every sample, by its name and the values of its labels."""
    reply = await node.get("/metrics", key=key)
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in prometheus(reply.body.decode())
        for sample in family.samples
    }


@pytest.mark.requirement("C18.1")
async def test_it_needs_an_auditor(node: Live) -> None:
    assert (await node.get("/metrics", key=None)).status == 401
    assert (await node.get("/metrics", key=await node.key("user"))).told == (403, "role")
    assert await numbers(node, await node.key("auditor", role="auditor"))


async def test_the_numbers_move_with_calls(node: Live) -> None:
    before = await numbers(node)
    for tool in ("echo", "echo", "rain", "broken", "off", "nothing"):
        await node.call(f"mcp:demo:{tool}")
    await node.get("/api/nothing")
    after = await numbers(node)
    calls, refusals = "openfang_calls_total", "openfang_refusals_total"
    route = ("openfang_http_requests_total", "/api/tools/{id}/call")
    moved = {name: value for name, value in after.items() if before.get(name) != value}
    expected = {
        (calls, "ok", "mcp:demo:echo"): 2,
        (calls, "error", "mcp:demo:rain"): 1,
        (calls, "failed", "mcp:demo:broken"): 1,
        (refusals, "tool_disabled"): 1,
        (refusals, "unknown_tool"): 1,
        (*route, "200"): 4,
        (*route, "403"): 1,
        (*route, "404"): 1,
        ("openfang_http_requests_total", "", "404"): 1,
    }
    found = {tuple(sorted(name)): value for name, value in moved.items()}
    assert {name: found.get(tuple(sorted(name))) for name in expected} == expected
    records = ("openfang_audit_records_total",)
    assert after[records] - before[records] == 4 * 3 + 2 + 1


async def test_what_is_under_way_is_counted(node: Live, demo: Demo) -> None:
    async with anyio.create_task_group() as group, listening(node), listening(node):
        for _ in range(3):
            group.start_soon(node.call, "mcp:demo:wait")
        with anyio.fail_after(30):
            while demo.waiting < 3:
                await anyio.lowlevel.checkpoint()
        await node.call("mcp:demo:deploy")
        now = await numbers(node)
        assert now["openfang_calls_in_flight",] == 3
        assert now["openfang_loop_tasks",] > 3
        assert now["openfang_event_listeners",] == 2
        assert now["openfang_approvals_pending",] == 1
        demo.released.set()
    assert (await numbers(node))["openfang_calls_in_flight",] == 0


@pytest.fixture
def logs(tmp_path: Path) -> Generator[Logs]:
    with open_logs("info", file=tmp_path / "log", redact=str) as opened:
        yield opened


@pytest.mark.usefixtures("logs")
async def test_what_others_supply_is_there_too(node: Live) -> None:
    await sign_head(node.app.parts)
    client = await node.client()
    now = await numbers(node)
    assert 0 <= now["openfang_audit_checkpoint_age_seconds",] < 60
    assert now["openfang_http_connections",] >= 2
    assert now["openfang_log_lines_dropped_total",] == 0
    client.hang_up()


@pytest.mark.requirement("C2.9")
async def test_a_bad_file_shows(node: Live) -> None:
    success = ("openfang_config_reload_success",)
    assert (await numbers(node))[success] == 1
    await anyio.Path(node.config_file).write_text("nonsense")
    await node.post("/api/config/reload")
    assert (await numbers(node))[success] == 0


async def test_open_metrics_is_spoken_to_who_asks_for_it(node: Live) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    reply = await node.get("/metrics", headers=accept)
    assert reply.headers["Content-Type"].startswith("application/openmetrics-text")
    assert reply.body.endswith(b"# EOF\n")


async def test_names_that_were_made_up_are_no_labels(node: Live) -> None:
    for number in range(5):
        await node.call(f"made-up-{number}")
        await node.get(f"/made/up/{number}", key=None)
    reply = await node.get("/metrics")
    assert b"made" not in reply.body
