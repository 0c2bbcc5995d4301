"""A daemon whose home is on a real Postgres server: calls, tasks, approvals, and its sudden end."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving
from tests.cli.test_daemon import here
from tests.postgres import run

from openfang.cli.errors import ERROR, PARKED

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C13.3")
_OPEN = (
    "SELECT COUNT(*) FROM audit AS a WHERE event = 'tool_invocation_start' AND NOT EXISTS "
    "(SELECT 1 FROM audit AS b WHERE b.event = 'tool_invocation_end' AND b.call_id = a.call_id)"
)
_CONFIG = """
[a2a]
enabled = true
[limits]
cells_per_minute = 1_000_000
burst = 1_000_000
[storage]
url = {url}
"""


@pytest.fixture
def moved(fresh: Cli, empty_postgres: str) -> Cli:
    """A home that was moved over; the file that it came from is out of reach."""
    assert fresh("storage", "migrate", "--to", empty_postgres).code == 0
    fresh.configure(_CONFIG.format(url=json.dumps(empty_postgres)))
    (fresh.home / "openfang.db").rename(fresh.home.parent / "before.db")
    return fresh


def over_mcp(cli: Cli, tool: str, **arguments: Any) -> Any:
    """Call a tool at /mcp, as a client does."""
    daemon = json.loads((cli.home / "daemon.json").read_text())
    body = {"name": tool, "arguments": arguments}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": body}
    head = {
        "Authorization": f"Bearer {(cli.home / 'key').read_text().strip()}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    with closing(HTTPConnection(daemon["listen_addr"], timeout=30)) as client:
        client.request("POST", "/mcp", json.dumps(asked), head)
        return json.loads(client.getresponse().read())


@contextmanager
def asked_for(cli: Cli) -> Generator[str]:
    parked = cli.call("shell_exec", command=["echo", "once"])
    assert parked.code == PARKED
    yield parked.json["approval"]


def test_a_home_on_postgres_serves_and_outlives_its_daemon(moved: Cli, empty_postgres: str) -> None:
    assert moved.call("memory_store", key="a", value="grün und gut").code == 0
    with here(moved) as daemon:
        assert "gut" in json.dumps(over_mcp(moved, "memory_recall", key="a"))
        found = moved("memory", "search", "GRUN", "--json")
        assert "gut" in found.out
        task = moved("a2a", "send", "echo", "hello there", "--context", "talk")
        assert (task.code, task.out) == (0, "hello there\n")
        with asked_for(moved) as question:
            assert moved("approvals", "approve", question).code == 0
        daemon.process.kill()
        daemon.process.wait(30)
    with serving(moved):
        assert moved.call("shell_exec", command=["echo", "once"]).code == 0
        (kept,) = moved("a2a", "tasks", "--json").json["tasks"]
        assert (kept["state"], kept["context"]) == ("completed", "talk")
        assert moved("usage", "--json").code == 0
        assert moved("sessions", "list", "--json").code == 0
        violations = moved.sql("SELECT * FROM task_audits WHERE event_type = 'policy_violation'")
        assert violations is not None
        counted = moved.sql(
            "SELECT COUNT(*) AS n FROM task_audits WHERE context->>'source_type' = 'builtin'"
        )
        assert json.dumps(counted)
    verified = moved("audit", "verify", "--json")
    assert (verified.code, verified.json["intact"]) == (0, True), verified.out
    assert asyncio.run(run(empty_postgres, _OPEN))[0][0][0] == 0
    assert not (moved.home / "openfang.db").exists()


def test_a_server_that_is_gone_is_one_sentence_at_a_start(moved: Cli) -> None:
    config = moved.home / "config.toml"
    config.write_text(
        config.read_text().replace("postgresql://postgres:@", "postgresql://p:geheim@127.0.0.1:1")
    )
    for command in (("start",), ("tools", "list"), ("status",), ("doctor",)):
        refused = moved(*command)
        said = refused.out + refused.err
        assert "Traceback" not in said
        assert "geheim" not in said
        assert (command, refused.code in {ERROR, 0}) == (command, True)
    assert "No Postgres server answers" in moved("tools", "list").err


def doctor(cli: Cli) -> tuple[int, dict[str, str]]:
    """What it says of each thing that is looked at, and how it ends."""
    ran = cli("doctor", "--json")
    return ran.code, {one["check"]: f"{one['health']}: {one['text']}" for one in ran.json}


def test_the_doctor_says_what_it_found_of_a_server(moved: Cli, empty_postgres: str) -> None:
    code, found = doctor(moved)
    assert (code, found["members"]) == (0, "ok: no node has served this database yet")
    assert re.search(r"ok: postgresql://.* answers within [0-9.]+ ms \(Postgre", found["database"])
    assert re.search(r"ok: 0.[0-9] s (ahead of|behind) that of the database", found["clock"])
    assert found["engine"].startswith("ok: dbos")
    for name, ago in (("early", 0), ("late", 60)):
        asyncio.run(run(empty_postgres, member(name, ago)))
    ahead = (
        "CREATE OR REPLACE FUNCTION clock_ns() RETURNS BIGINT LANGUAGE sql AS 'SELECT 1::bigint'"
    )
    assert doctor(moved)[1]["members"] == "warn: alive: early; dead: late"
    newer = "UPDATE migrations SET number = number + 1000, oldest = {}"
    last = "WHERE number = (SELECT MAX(number) FROM migrations)"
    asyncio.run(run(empty_postgres, f"{newer.format(15)} {last}", ahead))
    code, found = doctor(moved)
    assert found["schema"].startswith("ok: 10")
    assert (code, found["clock"].partition(":")[0]) == (1, "fail")
    asyncio.run(run(empty_postgres, f"{newer.format(2000)} {last}"))
    assert "written by a newer version" in doctor(moved)[1]["schema"]


def test_the_doctor_says_what_waits_on_queues_from_which_no_node_takes(
    moved: Cli, empty_postgres: str
) -> None:
    with here(moved):
        assert moved("a2a", "send", "echo", "hello").code == 0
    left = "UPDATE tasks SET final = 0, process = 'queue'"
    asyncio.run(run(empty_postgres, left))
    assert doctor(moved)[1]["engine"].startswith("ok: dbos")
    moved.configure('[cluster]\nengine = "inline"\n')
    assert "warn: inline, and what is on queues waits" in doctor(moved)[1]["engine"]
    asyncio.run(run(empty_postgres, "UPDATE tasks SET final = 1"))
    assert doctor(moved)[1]["engine"].startswith("ok: inline: a task is worked on by the node")


def member(name: str, ago: int) -> str:
    """A node that beat so many seconds ago."""
    beat = f"clock_ns() - {ago} * 1000000000::bigint"
    return (
        "INSERT INTO members (node, process, version, schema, address, started_at, beat_at) "  # noqa: S608 - our own
        f"VALUES ('{name}', '{name}', '1', 1, '', 0, {beat})"
    )


def test_the_doctor_says_once_that_a_server_is_down(moved: Cli) -> None:
    config = moved.home / "config.toml"
    text = config.read_text()
    config.write_text(text.replace("postgresql://postgres:@", "postgresql://p:geheim@127.0.0.1:1"))
    ran = moved("doctor", "--json")
    failed = [one for one in ran.json if one["health"] == "fail"]
    assert (ran.code, [one["check"] for one in failed]) == (ERROR, ["database"])
    assert "No Postgres server answers" in failed[0]["text"]


@pytest.mark.parametrize("password", ["ge heim", "ge@heim ", "ge/heim "])
def test_a_password_in_an_address_that_is_none_is_not_shown(fresh: Cli, password: str) -> None:
    fresh.configure(f'[storage]\nurl = "postgresql://p:{password}@db.example:5432/x"')
    refused = fresh("start")
    assert (refused.code, "db.example" in refused.err) == (ERROR, True)
    assert "heim" not in refused.err + refused.out
