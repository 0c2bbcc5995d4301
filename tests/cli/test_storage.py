"""Moving a home to a real Postgres server, as somebody types it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving
from tests.postgres import run

from openfang.cli.errors import ERROR

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C13.3")
_TABLES = ("audit", "keys", "settings", "checkpoints", "pins", "memory")


def test_a_home_moves_over_whole_and_a_second_time_there_is_nothing_to_do(
    fresh: Cli, empty_postgres: str
) -> None:
    fresh.call("memory_store", key="a", value="gr\u00fcn")
    moved = fresh("storage", "migrate", "--to", empty_postgres)
    assert moved.code == 0, moved.err
    assert "The home is copied." in moved.out
    assert f'url = "{empty_postgres}"' in moved.err
    queries = [f"SELECT * FROM {name}" for name in _TABLES]  # noqa: S608 - named above
    there = asyncio.run(run(empty_postgres, *queries))
    for query, rows in zip(queries, there, strict=True):
        assert sorted(repr(tuple(row)) for row in rows) == sorted(map(repr, fresh.stored(query)))
    again = fresh("storage", "migrate", "--to", empty_postgres, "--json").json
    assert again["new"] is False
    assert again["rows"]["audit"] == len(there[0])
    # What is numbered goes on behind what was copied.
    asyncio.run(
        run(
            empty_postgres,
            "INSERT INTO memory (space, name, labels, stored_at, stored_by, asked_by, trace, "
            "call_id, value, words) VALUES ('s', 'n', 0, 0, '', '', '', '', '1', '1')",
        )
    )


def test_how_far_readers_of_the_log_have_got_goes_with_its_node(
    fresh: Cli, empty_postgres: str
) -> None:
    places = {"ledger.folded": "7", "sink:stdout": "5", "anchor:ab": "3"}
    with closing(sqlite3.connect(fresh.home / "openfang.db")) as database, database:
        database.executemany("INSERT INTO settings VALUES (?, ?)", places.items())
    assert fresh("storage", "migrate", "--to", empty_postgres).code == 0
    (rows,) = asyncio.run(run(empty_postgres, "SELECT name, value FROM settings"))
    there = {row["name"]: row["value"] for row in rows}
    assert {f"{name}@{there['node']}": value for name, value in places.items()}.items() <= (
        there.items()
    )
    assert not places.keys() & there.keys()


def test_nothing_moves_while_a_daemon_serves_nor_over_what_is_there(
    fresh: Cli, postgres: str
) -> None:
    with serving(fresh):
        refused = fresh("storage", "migrate", "--to", postgres)
        assert (refused.code, "in use" in refused.err) == (ERROR, True)
    asyncio.run(run(postgres, "INSERT INTO projects VALUES ('theirs', 0)"))
    refused = fresh("storage", "migrate", "--to", postgres)
    assert (refused.code, "something else" in refused.err) == (ERROR, True)
    assert asyncio.run(run(postgres, "SELECT COUNT(*) FROM audit"))[0][0][0] == 0


def test_a_log_that_is_not_what_was_written_does_not_move(fresh: Cli, postgres: str) -> None:
    with closing(sqlite3.connect(fresh.home / "openfang.db")) as file, file:
        file.execute("UPDATE audit SET payload = '{}' WHERE seq = 1")
    refused = fresh("storage", "migrate", "--to", postgres)
    assert (refused.code, "not what was written" in refused.err) == (ERROR, True)
    assert asyncio.run(run(postgres, "SELECT COUNT(*) FROM keys"))[0][0][0] == 0


def test_a_server_that_is_not_there_is_one_sentence_without_the_password(fresh: Cli) -> None:
    refused = fresh("storage", "migrate", "--to", "postgresql://u:geheim@127.0.0.1:1/x")
    assert (refused.code, "No Postgres server answers" in refused.err) == (ERROR, True)
    assert "geheim" not in refused.err + refused.out
