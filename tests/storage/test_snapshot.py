"""A copy of the database is whole, bounded in time, and can be stopped."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from openfang.core.errors import HomeError
from openfang.storage.database import open_home
from openfang.storage.snapshot import Stopped, snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C13.1")
ROWS = 20_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "openfang.db"
    with closing(open_home(path)) as database:
        rows = ((f"key{number}", "x" * 20) for number in range(ROWS))
        database.connection.execute("BEGIN")
        database.connection.executemany("INSERT INTO settings VALUES (?, ?)", rows)
        database.connection.execute("COMMIT")
    return path


def test_a_copy_is_of_one_moment_while_others_write(file: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA busy_timeout = 0")
        written: list[int] = []

        def write() -> bool:
            writer.execute("INSERT INTO settings VALUES (?, '')", (f"new{len(written)}",))
            written.append(1)
            return False

        snapshot(file, tmp_path / "copy", stop=write)
        assert len(written) > 5  # and none of them had to wait
        count = "SELECT COUNT(*) FROM settings"
        with closing(sqlite3.connect(tmp_path / "copy")) as copy:
            assert copy.execute(count).fetchone() == (ROWS,)
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert writer.execute(count).fetchone() == (ROWS + len(written),)


def test_what_was_deleted_is_not_in_the_copy(file: Path, tmp_path: Path) -> None:
    with closing(open_home(file)) as database:
        database.connection.execute("INSERT INTO settings VALUES ('gone', 'very-secret-indeed')")
        database.connection.execute("DELETE FROM settings WHERE name = 'gone'")
        snapshot(file, tmp_path / "copy", stop=lambda: False)
    assert b"very-secret-indeed" not in (tmp_path / "copy").read_bytes()


def test_a_copy_that_takes_too_long_is_given_up(file: Path, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="within 0 s") as caught:
        snapshot(file, tmp_path / "copy", stop=lambda: False, seconds=0)
    assert not isinstance(caught.value, Stopped)


def test_a_copy_that_nobody_wants_any_more_is_stopped(file: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        snapshot(file, tmp_path / "copy", stop=lambda: True)


def test_a_database_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "openfang.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(HomeError, match="damaged"):
        snapshot(tmp_path / "openfang.db", tmp_path / "copy", stop=lambda: False)
