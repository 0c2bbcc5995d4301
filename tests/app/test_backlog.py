"""What the registry keeps while the node serves: no call waits for it, and nothing is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread

from openfang.app.stores import Backlog, StoredNames
from openfang.audit.chain import digest
from openfang.core.errors import Conflict
from openfang.storage.database import Database, open_home
from openfang.storage.units import Line, Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C1.3", "C2.9")
HELD = Unit((Line("tool_held", "warning", "", "", "{}", "{}"),))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_home(tmp_path / "openfang.db")) as opened:
        yield opened


@pytest.fixture
def writer(database: Database) -> Iterator[Writer]:
    with closing(Writer(path=database.path, node="n", digest=digest)) as opened:
        yield opened


@pytest.fixture
def names(writer: Writer) -> StoredNames:
    return StoredNames({}, Backlog(writer))


async def kept(database: Database, names: StoredNames) -> Mapping[str, str]:
    return (await StoredNames.read(database, names.backlog)).load()


async def drained(writer: Writer) -> None:
    with anyio.fail_after(30):
        await writer.drain()
        await anyio.lowlevel.checkpoint()


def locked(path: Path) -> sqlite3.Connection:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


async def test_a_locked_database_delays_nobody_and_gets_it_later(
    database: Database, writer: Writer, names: StoredNames
) -> None:
    names.backlog.serving = True
    with closing(await to_thread.run_sync(locked, writer.path)) as other:
        # Whoever waited for the lock would give up after 5 s, and say so.
        names.save({"mcp:a:b": "mcp_a_b"}, {})
        names.backlog.add(HELD)
        assert await kept(database, names) == {}
        await to_thread.run_sync(other.execute, "ROLLBACK")
    await drained(writer)
    assert await kept(database, names) == {"mcp:a:b": "mcp_a_b"}
    assert writer.head.seq == 1


async def test_what_could_not_be_kept_is_tried_again_at_the_next_change(
    database: Database,
    writer: Writer,
    names: StoredNames,
    caplog: pytest.LogCaptureFixture,
) -> None:
    names.backlog.serving = True
    database.connection.execute("ALTER TABLE names RENAME TO away")
    database.connection.execute("ALTER TABLE audit RENAME TO away_too")
    names.save({"mcp:a:b": "first", "mcp:a:c": "second"}, {})
    names.backlog.add(HELD)
    with anyio.fail_after(30):
        while caplog.text.count("could not be kept yet") < 2:
            await anyio.lowlevel.checkpoint()
    database.connection.execute("ALTER TABLE away RENAME TO names")
    database.connection.execute("ALTER TABLE away_too RENAME TO audit")
    names.save({"mcp:a:b": "third"}, {"mcp:a:b": "first"})
    await drained(writer)
    assert await kept(database, names) == {"mcp:a:b": "third", "mcp:a:c": "second"}
    assert writer.head.seq == 1


async def test_a_name_that_somebody_else_was_given_meanwhile_is_not_taken_from_them(
    database: Database, writer: Writer, names: StoredNames
) -> None:
    names.save({"mcp:a:b": "taken", "mcp:a:e": "mine"}, {})
    names.backlog.serving = True
    names.save({"mcp:a:c": "taken", "mcp:a:e": "other", "mcp:a:d": "free"}, {})
    await drained(writer)
    expected = {"mcp:a:b": "taken", "mcp:a:d": "free", "mcp:a:e": "mine"}
    assert await kept(database, names) == expected
    names.save({"mcp:a:e": "moved", "mcp:a:f": "mine"}, {"mcp:a:e": "mine"})
    await drained(writer)
    expected |= {"mcp:a:e": "moved", "mcp:a:f": "mine"}
    assert await kept(database, names) == expected


async def test_what_the_database_will_never_take_stops_nothing_else(
    database: Database, writer: Writer, names: StoredNames
) -> None:
    broken: Mapping[str, Any] = {"mcp:a:b": None}
    with pytest.raises(Conflict):
        names.save(broken, {})
    names.backlog.serving = True
    names.save(broken, {})
    await drained(writer)
    names.save({"mcp:a:d": "free"}, {})
    await drained(writer)
    assert await kept(database, names) == {"mcp:a:d": "free"}
