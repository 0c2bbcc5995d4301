"""Who may be a node of a database, and what the operator says of those that are."""

from __future__ import annotations

import asyncio
import secrets
import signal
from typing import TYPE_CHECKING, Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.cluster.house import homes
from tests.cluster.kitchen import Kitchen, rows, send, state, until
from tests.cluster.test_takeover import assert_each_call_ended_once, ready

from openfang.cli.errors import ERROR
from openfang.storage.database import migrations
from openfang.storage.postgres import migrate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.cluster.conftest import MakeCluster
    from tests.cluster.house import Node

pytestmark = [pytest.mark.requirement("C13.3"), pytest.mark.timeout(180)]


def shown(node: Node) -> dict[str, str]:
    """How a node sees all of them."""
    return {
        one["node"]: one["state"] for one in node.cli("nodes", "list", "--json").json["members"]
    }


async def upgraded(url: str, oldest: int) -> None:
    """Let a later version migrate the database: it adds a column, and says who can live with it."""
    connection = await cast("Any", asyncpg).connect(url)
    known = await asyncio.to_thread(migrations, "postgres")
    last = await migrate.version(connection)
    before, migrate.OLDEST = migrate.OLDEST, oldest  # type: ignore[misc]
    try:
        more = f"ALTER TABLE members ADD COLUMN later_{last} TEXT NOT NULL DEFAULT '';"
        await migrate.migrate(connection, [*known, (last + 1, more)])
    finally:
        migrate.OLDEST = before  # type: ignore[misc]
        await connection.close()


def test_a_node_drains_and_resumes_and_is_forgotten_once_it_has_ended(
    make_cluster: MakeCluster, empty_postgres: str
) -> None:
    with make_cluster("ab") as cluster:
        a, b = cluster.nodes
        until(lambda: shown(a) == {"a": "alive", "b": "alive"})
        assert (ready(a), ready(b)) == ((200, "ready"), (200, "ready"))
        assert a.cli("nodes", "drain", "b").out == "b takes nothing new.\n"
        until(lambda: ready(b) == (503, "draining"))
        with b.client as client:
            assert client.get("/api/health").status_code == 200
            body = {"agent": "echo", "message": "hi"}
            refused = client.post("/api/a2a/tasks", json=body)
            assert (refused.status_code, refused.json()["rule"]) == (503, "not_serving")
        assert b.call("system_time")["outcome"] == "ok", "what comes all the same is answered"
        assert shown(b) == {"a": "alive", "b": "draining"}
        lives = a.cli("nodes", "remove", "b")
        assert (lives.code, "is alive" in lives.err + lives.out) == (ERROR, True)
        assert b.cli("nodes", "resume", "b").out == "b takes work again.\n"
        until(lambda: ready(b) == (200, "ready"))
        assert b.cli("stop").code == 0
        assert shown(a) == {"a": "alive", "b": "left"}
        assert a.cli("nodes", "remove", "b").out == "b is forgotten.\n"
        assert shown(a) == {"a": "alive"}
        assert a.cli("nodes", "drain", "b").code == ERROR
        acts = rows(empty_postgres, "SELECT payload FROM audit WHERE event = 'node_changed'")
        assert [("drain" in one, "resume" in one, "remove" in one) for (one,) in acts] == [
            (True, False, False),
            (False, True, False),
            (False, False, True),
        ]
        verified = a.cli("audit", "verify", "--json")
        assert (verified.code, verified.json["intact"]) == (0, True), "its chain is there"


def test_two_nodes_of_one_name_and_a_node_with_another_key_are_refused(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    a, b = homes(make_home, empty_postgres, "ab")
    a.start()
    try:
        second = b.cli("start", env={"OPENFANG_NODE": "a"})
        assert (second.code, "Another node beats under the name a" in second.err) == (ERROR, True)
        assert "OPENFANG_NODE" in second.err
        (b.cli.home / "master.key").write_bytes(secrets.token_bytes(32))
        for command in (("start",), ("tools", "call", "system_time")):
            other = b.cli(*command)
            assert (other.code, "another master key" in other.err) == (ERROR, True)
        assert a.call("system_time")["outcome"] == "ok"
        assert rows(empty_postgres, "SELECT DISTINCT node FROM members") == [("a",)]
    finally:
        a.end()
    # It was killed: the name is free at once for the home that had it.
    a.start()
    a.end()


def test_a_node_goes_on_working_on_the_schema_of_a_later_one_and_starts_if_that_lets_it(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    a, b = homes(make_home, empty_postgres, "ab")
    a.start()
    try:
        asyncio.run(upgraded(empty_postgres, migrate.OLDEST))
        assert a.call("memory_store", key="color", value="green")["outcome"] == "ok"
        b.start()
        assert "green" in str(b.call("memory_recall", key="color"))
        b.end()
        later = max(number for (number,) in rows(empty_postgres, "SELECT number FROM migrations"))
        asyncio.run(_too_new(empty_postgres, later + 1))
        refused = b.cli("start")
        assert (refused.code, "newer version" in refused.err) == (ERROR, True)
        assert a.call("memory_recall", key="color")["outcome"] == "ok", "who runs goes on"
    finally:
        a.end()
        b.end()


async def _too_new(url: str, number: int) -> None:
    connection = await cast("Any", asyncpg).connect(url)
    try:
        await connection.execute(f"INSERT INTO migrations VALUES ({number}, 1, {number})")  # noqa: S608
    finally:
        await connection.close()


@pytest.mark.needs("bwrap")
def test_what_a_node_works_on_when_it_is_told_to_end_goes_on_at_another_at_once(
    make_home: Callable[[], Cli], empty_postgres: str, tmp_path: Path
) -> None:
    kitchen = Kitchen(tmp_path)
    a, b = homes(kitchen.furnish(make_home), empty_postgres, "ab", kitchen.config)
    try:
        for node in (a, b):
            node.start()
        begun = send(b)
        with kitchen.watched():
            assert b.process is not None
            b.process.send_signal(signal.SIGTERM)
            assert b.process.wait(30) == 0
            until(lambda: kitchen.heard == 2, 10)
        until(lambda: state(a, begun) == "completed")
        assert_each_call_ended_once(a, empty_postgres)
    finally:
        a.end()
        b.end()
