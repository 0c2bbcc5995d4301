from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from openfang.core.errors import HomeError
from openfang.core.labels import Labels
from openfang.core.memory import UNKNOWN
from openfang.storage.database import at_once, migrations, open_home, split_statements
from openfang.storage.memory import MemoryStore, Sought
from openfang.storage.state import RunStore, grow_run
from openfang.storage.words import indexed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C2.6")


def test_a_home_is_migrated_once(tmp_path: Path) -> None:
    file = tmp_path / "openfang.db"
    open_home(file).close()
    with closing(open_home(file)) as database:
        numbers = [(number,) for number, _ in migrations()]
        assert database.read_now("SELECT number FROM migrations") == numbers


def test_a_home_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "openfang.db"
    with closing(open_home(file)) as database:
        database.connection.execute("INSERT INTO migrations VALUES (999, 0)")
    with pytest.raises(HomeError) as caught:
        open_home(file)
    assert "newer version" in caught.value.message
    assert "upgrade" in caught.value.way_out


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    file = tmp_path / "openfang.db"
    file.write_bytes(b"not a database at all, and longer than a header" * 100)
    with pytest.raises(HomeError) as caught:
        open_home(file)
    assert str(file) in caught.value.message
    assert "backup" in caught.value.way_out


def test_a_damaged_database_is_named_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "openfang.db"
    open_home(file).close()
    content = bytearray(file.read_bytes())
    content[2048:] = b"\xff" * (len(content) - 2048)
    file.write_bytes(bytes(content))
    with pytest.raises(HomeError) as caught:
        open_home(file).read_now("SELECT * FROM settings")
    assert "damaged" in caught.value.message


def test_the_schema_has_no_statement_with_a_semicolon_inside() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.create_function("sha256", 1, str)
        database.create_function("words_of", 2, indexed)
        for _, script in migrations():
            for statement in split_statements(script):
                database.execute(statement)


@pytest.mark.requirement("C13.3")
def test_both_dialects_describe_the_same_tables() -> None:
    for (_, here), (_, there) in zip(migrations(), migrations("postgres"), strict=True):
        assert _shape(here) == _shape(there)


def _shape(script: str) -> list[str]:
    """Names of tables, indexes and columns, in order, whatever their types and keys.

    Words are found by a table of their own in the one dialect, by an index in the other.
    """
    names = re.compile(r"^(?:CREATE (?:TABLE|(?:UNIQUE )?INDEX) \w+|    (?!PRIMARY KEY)\w+)")
    return [
        found[0].strip()
        for statement in split_statements(script)
        if not statement.startswith(("CREATE VIEW", "CREATE FUNCTION", "INSERT"))
        and "memory_words" not in statement
        for line in statement.splitlines()
        if (found := names.match(line))
    ]


@pytest.mark.requirement("C18.1")
def test_an_older_home_keeps_its_keys_and_runs(tmp_path: Path) -> None:
    file = tmp_path / "openfang.db"
    with closing(sqlite3.connect(file)) as old:
        for statement in split_statements(migrations()[0][1]):
            old.execute(statement)
        old.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, applied_at INTEGER)")
        old.execute("INSERT INTO migrations VALUES (1, 0)")
        for identity, revoked in (("a", None), ("b", None), ("c", 5)):
            row = (identity, "twin", "key", identity.encode(), "{}", 1, None, revoked)
            old.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        old.execute("INSERT INTO runs VALUES ('of_secret', ?, 0)", (int(Labels.SECRET),))
        old.commit()
    with closing(open_home(file)) as database:
        names = database.read_now("SELECT id, name FROM keys ORDER BY id")
        assert names == [("a", "twin"), ("b", "twin-b"), ("c", "twin")]
        assert at_once(RunStore(database).labels("of_secret")) == Labels.SECRET
        assert "of_secret" not in "".join(database.connection.iterdump())


@pytest.mark.requirement("C6.2")
def test_an_older_home_finds_its_memories_by_their_words(tmp_path: Path) -> None:
    file = tmp_path / "openfang.db"
    kept = {"colour": '"gr\u00fcn"', "trip": '{"where":"Lisboa","nights":3}', "broken": "{"}
    with closing(sqlite3.connect(file)) as old:
        old.create_function("sha256", 1, str)
        old.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, applied_at INTEGER)")
        for number, script in migrations()[:5]:
            for statement in split_statements(script):
                old.execute(statement)
            old.execute("INSERT INTO migrations VALUES (?, 0)", (number,))
        for at, (name, value) in enumerate(kept.items()):
            row = ("key-admin", name, value, int(Labels.PII), at)
            old.execute("INSERT INTO memory VALUES (?, ?, ?, ?, ?)", row)
        old.commit()
    with closing(open_home(file)) as database:
        store = MemoryStore(database)
        assert at_once(store.recall("key-admin", "trip")) == (kept["trip"], Labels.PII)
        for query, found in {"GRUN": "colour", "lisboa": "trip", "nights": "trip"}.items():
            (memory,) = at_once(store.search(Sought(space="key-admin", query=query, limit=5)))
            assert (memory.key, memory.labels, memory.origin) == (found, Labels.PII, UNKNOWN)


@pytest.mark.requirement("C18.3")
def test_a_run_named_after_a_secret_is_kept_by_its_digest(tmp_path: Path) -> None:
    with closing(open_home(tmp_path / "openfang.db")) as database:
        for labels in (Labels.PII, Labels.SECRET):
            database.connection.execute(*grow_run("of_secret", labels, 1))
        assert at_once(RunStore(database).labels("of_secret")) == Labels.PII | Labels.SECRET
        assert at_once(RunStore(database).labels("another")) == Labels.NONE
        assert "of_secret" not in "".join(database.connection.iterdump())
