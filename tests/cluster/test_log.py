"""One log of three nodes that write at once: followed, counted, checked and passed on."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from playwright.async_api import expect
from tests.edges.web.screen import PATIENCE, chromium, opened, violations
from tests.postgres import run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    import httpx
    from tests.cluster.conftest import MakeCluster
    from tests.cluster.house import Cluster, Node

pytestmark = pytest.mark.requirement("C12.1", "C13.1", "C13.2")
SECONDS = 60.0
CALLS = 25
OF_A_CALL = 3
expect.set_options(timeout=PATIENCE)


def events(answer: httpx.Response) -> Iterator[dict[str, str]]:
    """Read server-sent events, as fields."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield fields
            fields = {}


def listened(node: Node, last: str, most: int, wanted: int) -> tuple[str, list[tuple[str, int]]]:
    """Hear some events at a node, and say which id was the last: what a client knows."""
    found = list[tuple[str, int]]()
    headers = {"Last-Event-ID": last} if last else {}
    with node.client as client, client.stream("GET", "/api/events", headers=headers) as answer:
        for event in events(answer):
            last = event.get("id", last)
            if event.get("event") in {"call", "decision", "node"}:
                data = json.loads(event["data"])
                found.append((data["node"], data["audit_id"]))
            if len(found) >= min(most, wanted) or not wanted:
                break
    return last, found


def work(node: Node) -> None:
    with node.client as client:
        for _ in range(CALLS):
            body: dict[str, Any] = {"arguments": {}}
            assert client.post("/api/tools/system_time/call", json=body).status_code == 200


def written(node: Node, after: str) -> list[tuple[str, int]]:
    with node.client as client:
        lines = client.get("/api/audit/export", params={"after": after}).text.splitlines()
    return [(one["node"], one["audit_id"]) for one in map(json.loads, lines)]


def verified(node: Node, stop: Event) -> list[Any]:
    """Check the log again and again while it is written to."""
    found = list[Any]()
    with node.client as client:
        while not stop.is_set():
            found.append(client.get("/api/audit/verify").json())
    return found


def test_a_listener_that_is_moved_from_node_to_node_misses_nothing(cluster: Cluster) -> None:
    start, _ = listened(cluster["a"], "", 0, 0)
    assert ":" in start, "where several nodes write, an id names the last record of each"
    heard, last, wanted = list[tuple[str, int]](), start, 3 * CALLS * OF_A_CALL
    turns, stop = cycle(zip(cluster.nodes, (7, 20, 1), strict=True)), Event()
    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, node) for node in cluster.nodes]
        checking = pool.submit(verified, cluster["b"], stop)
        deadline = time.monotonic() + SECONDS
        while len(heard) < wanted and time.monotonic() < deadline:
            node, most = next(turns)
            last, found = listened(node, last, most, wanted - len(heard))
            heard += found
        for done in working:
            done.result(SECONDS)
        stop.set()
        checks = checking.result(SECONDS)
    assert sorted(heard) == sorted(written(cluster["c"], start))
    for name in "abc":
        numbers = [number for node, number in heard if node == name]
        assert numbers == list(range(numbers[0], numbers[0] + CALLS * OF_A_CALL))
    assert [one for one in checks if not one["intact"]] == []
    _shown_and_counted(cluster, last)


def _shown_and_counted(cluster: Cluster, last: str) -> None:
    """Whatever node is asked, it answers for all of them."""
    calls = 3 * CALLS
    for node in cluster.nodes:
        with node.client as client:
            used = client.get("/api/usage", params={"by": "key"}).json()
            assert used["total"]["tool_calls"] == calls
            assert client.get("/api/audit", params={"after": last}).json()["records"] == []
            same = client.get("/api/audit", params={"record": "2"})
            assert (same.status_code, same.json()["rule"]) == (422, "record")
            (one,) = client.get("/api/audit", params={"record": "b:2"}).json()["records"]
            assert (one["node"], one["audit_id"]) == ("b", 2)
    shown = cluster["a"].cli("audit", "show", "c:2", "--json").json
    assert (shown["node"], shown["audit_id"]) == ("c", 2)
    tail = cluster["c"].cli("audit", "tail", "-n", "200", "--json").lines
    assert {line["node"] for line in tail} >= set("abc")
    lines = str(cluster["a"].cli.home / "proven.jsonl")
    exported = cluster["a"].cli("audit", "export", lines, "--with-checkpoints")
    assert exported.code == 0, exported.err
    key = cluster["b"].cli("audit", "verify", "--json").json["key"]
    checked = cluster["c"].cli("audit", "verify", "--file", lines, "--key", key)
    assert checked.code == 0, checked.out
    altered = "UPDATE audit SET payload = '{}' WHERE node = 'b' AND seq = 3"
    asyncio.run(run(cluster.database, altered))
    found = cluster["c"].cli("audit", "verify", "--json").json["findings"]
    assert [(one["kind"], one["node"], one["record"]) for one in found] == [("altered", "b", 3)]


def test_a_survivor_passes_on_what_a_dead_node_has_not(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    sink, witness = tmp_path / "all.jsonl", tmp_path / "witness.jsonl"
    config = f"[audit]\njsonl = {json.dumps(str(sink))}\ncheckpoint_seconds = 3600\n"
    with witnessing(witness) as anchor, make_cluster("ab", config + anchor) as cluster:
        for node in cluster.nodes:
            work(node)
        cluster.kill("b")
        rest = cluster["a"]
        there = written(rest, "0")
        until(rest, lambda: _signed(rest, "b"))
        ours = {one for one in there if one[0] in {"a", "b"}}
        until(rest, lambda: ours <= set(_passed(sink)))
        passed = [one for one in _passed(sink) if one[0] in {"a", "b"}]
        # Only what b had just passed on when it was killed, and not noted yet, may come twice.
        twice = [one for one, count in Counter(passed).items() if count > 1]
        assert len(passed) - len(set(passed)) == len(twice) <= 1
        assert {node for node, _ in twice} <= {"b"}
        assert rest.cli("audit", "verify").code == 0
        ends = max(number for node, number in there if node == "b")
        until(rest, lambda: ("b", ends) in _witnessed(witness))
        assert proven(rest, witness) == []
        cut = f"DELETE FROM {{}} WHERE node = 'b' AND seq >= {ends}"  # noqa: S608 - our own
        asyncio.run(run(cluster.database, *map(cut.format, ("audit", "checkpoints"))))
        assert [(one["kind"], one["node"]) for one in proven(rest, witness)] == [("cut", "b")]


@contextmanager
def witnessing(kept: Path) -> Generator[str]:
    """Keep checkpoints outside, and give the configuration that has them sent here."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with kept.open("ab") as file:
                file.write(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        yield f'[audit.anchor]\nurl = "{url}"\nallow_private = true\n'
        server.shutdown()
        thread.join()


def _witnessed(kept: Path) -> set[tuple[str, int]]:
    lines = kept.read_text().splitlines() if kept.exists() else []
    return {(one["node"], one["seq"]) for one in map(json.loads, lines)}


def proven(node: Node, witness: Path) -> list[Any]:
    """Say what is wrong with an export, by what was kept outside."""
    lines = node.cli.home / "proven.jsonl"
    lines.unlink(missing_ok=True)
    exported = node.cli("audit", "export", str(lines), "--with-checkpoints")
    assert exported.code == 0, exported.err
    key = node.cli("audit", "verify", "--json").json["key"]
    options = ("--file", str(lines), "--key", key, "--checkpoints", str(witness), "--json")
    return node.cli("audit", "verify", *options).json["findings"]


def until(node: Node, is_so: Callable[[], bool]) -> None:
    """Ask a node for something until something else has come about."""
    deadline = time.monotonic() + SECONDS
    with node.client as client:
        while not is_so():
            assert time.monotonic() < deadline
            assert client.get("/api/status").status_code == 200


def _signed(node: Node, name: str) -> bool:
    (count,) = node.cli.sql(f"SELECT COUNT(*) AS n FROM checkpoints WHERE node = '{name}'")  # noqa: S608 - a letter
    return count["n"] > 0


def _passed(sink: Path) -> list[tuple[str, int]]:
    if not sink.exists():
        return []
    lines = sink.read_text().splitlines()
    return [(one["node"], one["audit_id"]) for one in map(json.loads, lines)]


@pytest.mark.requirement("C19.2")
@pytest.mark.needs("chromium")
async def test_the_page_tells_which_node_a_call_was_made_on(make_cluster: MakeCluster) -> None:
    with make_cluster("ab") as cluster:
        key = (cluster["a"].cli.home / "key").read_text().strip()
        await to_thread.run_sync(cluster["b"].call, "system_time")
        async with chromium() as browser, opened(browser, judged=True) as (page, wrong):
            await page.goto(f"{cluster['a'].address}/login?next=/calls")
            await page.fill("input[name=key]", key)
            await page.press("input[name=key]", "Enter")
            rows = page.locator("#rows tr")
            await expect(rows).to_have_count(1)
            await expect(rows.first.locator("td").nth(8)).to_have_text("b")
            await to_thread.run_sync(cluster["b"].call, "system_time")
            await expect(rows).to_have_count(2)
            await expect(rows.first.locator("td").nth(8)).to_have_text("b")
            assert await violations(page) == []
            await rows.first.locator("a.open").click()
            await expect(page.locator("section:has(#h-aud) dl")).to_contain_text("Node")
            await page.locator("section:has(#h-aud) dd a").first.click()
            await expect(page.locator("details.record summary")).to_contain_text("b #")
            await page.goto(f"{cluster['a'].address}/")
            nodes = page.locator("section:has(#h-nodes) tbody tr")
            await expect(nodes).to_have_count(2)
            await expect(nodes.nth(0)).to_contain_text("this one")
            await expect(nodes.nth(1)).to_contain_text("Alive")
            assert await violations(page) == []
            assert wrong == []
