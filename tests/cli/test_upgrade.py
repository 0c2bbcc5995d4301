"""A home of an older version is brought up to date, whole or not at all, and a copy is kept."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import Cli

from openfang.storage.database import migrations

if TYPE_CHECKING:
    from tests.cli.conftest import Ran

pytestmark = pytest.mark.requirement("C2.6")
OLD = Path(__file__).parent.parent / "data" / "homes" / "schema-5"
# Does all of an upgrade but its end, and dies.
_KILLED = """
import os, sqlite3, sys
from openfang.storage.database import Database, _apply, migrations
from pathlib import Path
connection = Database(Path(sys.argv[1])).connection
connection.execute("BEGIN IMMEDIATE")
_apply(connection, migrations(), 5)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def older(tmp_path: Path) -> Cli:
    """A home as an older version left it, with a question that waits and a log of 19 records."""
    home = tmp_path / "home"
    shutil.copytree(OLD, home, ignore=shutil.ignore_patterns("*.sql", "*.hex"))
    (home / "master.key").write_bytes(bytes.fromhex((OLD / "master.hex").read_text()))
    with closing(sqlite3.connect(home / "openfang.db")) as database:
        database.executescript((OLD / "openfang.sql").read_text())
    for one in (home, *home.rglob("*")):
        one.chmod(0o700 if one.is_dir() else 0o600)
    return Cli(home, tmp_path / "pycache")


def schema(file: Path) -> int:
    with closing(sqlite3.connect(file)) as database:
        return database.execute("SELECT MAX(number) FROM migrations").fetchone()[0]


def content(file: Path) -> str:
    with closing(sqlite3.connect(file)) as database:
        return "\n".join(database.iterdump())


def test_a_home_of_an_older_version_goes_on_and_a_copy_from_before_is_kept(older: Cli) -> None:
    before = content(older.home / "openfang.db")
    verified = older("audit", "verify", "--json")
    assert (verified.code, verified.json["intact"]) == (0, True)
    assert schema(older.home / "openfang.db") == migrations()[-1][0]
    copy = older.home / "openfang.db.schema-5"
    assert (content(copy), copy.stat().st_mode & 0o777) == (before, 0o600)
    assert older.call("memory_recall", key="colour").json["outcome"] == "ok"
    (asked,) = older("approvals", "list", "--json").json
    assert asked["tool"] == "builtin:shell_exec"
    assert {one["name"] for one in older("keys", "list", "--json").json} == {"admin", "other"}
    found = {one["check"]: one for one in older("doctor", "--json").json}
    assert (found["schema"]["health"], str(copy) in found["schema"]["text"]) == ("ok", True)


def test_the_copy_from_before_is_in_no_backup(older: Cli, tmp_path: Path) -> None:
    older("tools", "list")
    made = older("backup", str(tmp_path / "kept.tar.gz"))
    assert (made.code, (older.home / "openfang.db.schema-5").exists()) == (0, True)
    listed = subprocess.run(
        ["tar", "tzf", tmp_path / "kept.tar.gz"], capture_output=True, text=True, check=True
    )
    assert [one for one in listed.stdout.split() if "openfang.db" in one] == ["openfang.db"]


def refused(ran: Ran, *words: str) -> bool:
    return ran.code == 1 and all(word in ran.err for word in words)


def test_an_upgrade_that_fails_half_way_leaves_the_home_as_it_was(older: Cli) -> None:
    file = older.home / "openfang.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE installs (id TEXT)")  # which the last change would make
    before = content(file)
    for command in (("tools", "list"), ("start",), ("audit", "verify")):
        assert refused(older(*command), "from schema 5", "It is as it was", "installs")
    assert content(file) == before
    with closing(sqlite3.connect(file)) as database:
        database.execute("DROP TABLE installs")
    assert older("audit", "verify").code == 0


def test_an_upgrade_that_is_killed_leaves_the_home_as_it_was(older: Cli) -> None:
    file = older.home / "openfang.db"
    before = content(file)
    died = subprocess.run([sys.executable, "-c", _KILLED, str(file)], check=False)
    assert (died.returncode, content(file)) == (-9, before)
    assert older("audit", "verify").code == 0


@pytest.mark.parametrize("command", [("tools", "list"), ("start",), ("init",)])
def test_nothing_is_changed_where_no_copy_can_be_kept(older: Cli, command: tuple[str, ...]) -> None:
    file = older.home / "openfang.db"
    before = content(file)
    (older.home / "openfang.db.schema-5").mkdir()
    (older.home / "openfang.db.schema-5" / "something").touch()
    assert refused(older(*command), "no copy", "Nothing was changed")
    assert content(file) == before
    assert not list(older.home.glob(".openfang.db*"))
