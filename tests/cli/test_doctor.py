"""`openfang doctor --fix`: what it mends, that it asks, and that each way out is one."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import openfang
from openfang.cli.app import _COMMANDS, _GROUPS

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C2.8")
SECONDS = 30


def broken(home: Path) -> None:
    """Leave a home as people and killed daemons do."""
    (home / "key").unlink()
    (home / "master.key").chmod(0o644)
    home.chmod(0o755)
    told = {"pid": 4_000_000, "listen_addr": "127.0.0.1:1", "version": "0.0.1", "platform": "linux"}
    left = {**told, "started_at": "2026-01-01T00:00:00Z"}
    (home / "daemon.json").write_text(json.dumps(left))


def wrong(ran: Ran) -> set[str]:
    return {check["check"] for check in ran.json if check["health"] != "ok" and check["mends"]}


def test_what_is_safe_to_mend_is_mended_and_said(fresh: Cli) -> None:
    broken(fresh.home)
    found = fresh("doctor", "--json")
    assert (found.code, wrong(found)) == (1, {"permissions", "key", "daemon"})
    mended = fresh("doctor", "--fix", "--yes", "--json")
    assert (mended.code, wrong(mended)) == (0, set())
    assert [line.split(":")[0] for line in mended.err.splitlines()] == [
        *("permissions", "permissions", "key", "daemon"),
    ]
    assert fresh("tools", "call", "system_time").code == 0
    again = fresh("doctor", "--fix", "--yes")
    assert (again.code, "nothing that could be mended" in again.err) == (0, True)


def test_where_nobody_can_be_asked_nothing_is_mended(fresh: Cli) -> None:
    (fresh.home / "key").chmod(0o644)
    ran = fresh("doctor", "--fix")
    assert (ran.code, "--fix --yes" in ran.err) == (1, True)
    assert (fresh.home / "key").stat().st_mode & 0o777 == 0o644
    assert "openfang doctor --fix" in fresh("doctor").err


def test_a_person_is_asked_before_each_is_mended(fresh: Cli) -> None:
    (fresh.home / "key").chmod(0o644)
    fresh.home.chmod(0o755)
    ours, theirs = pty.openpty()
    command, environ = fresh.command("doctor", "--fix"), fresh.environment({"TERM": "xterm"})
    running = subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said, answers = "", [b"y\n", b"n\n"]
    while select.select([ours], [], [], SECONDS)[0]:
        try:
            said += os.read(ours, 4_096).decode()
        except OSError:  # the other end is closed
            break
        if said.endswith("[y/N] ") and answers:
            os.write(ours, answers.pop(0))
    os.close(ours)
    assert (running.wait(SECONDS), answers) == (1, [])
    modes = [one.stat().st_mode & 0o777 for one in (fresh.home, fresh.home / "key")]
    assert modes == [0o700, 0o644]


def test_an_older_schema_is_mended_with_a_copy_kept(fresh: Cli) -> None:
    with closing(sqlite3.connect(fresh.home / "openfang.db")) as database:
        (last,) = database.execute("SELECT MAX(number) FROM migrations").fetchone()
        database.execute("DROP TABLE asked")
        database.execute("DROP TABLE trigger_starts")
        database.execute("ALTER TABLE timers DROP COLUMN taken_by")
        database.execute("ALTER TABLE processes DROP COLUMN writer")
        database.execute("DELETE FROM migrations WHERE number = ?", (last,))
        database.commit()
    assert wrong(fresh("doctor", "--json")) == {"schema"}
    assert wrong(fresh("doctor", "--fix", "--yes", "--json")) == set()
    assert list(fresh.home.glob("openfang.db.schema-*"))


def test_every_command_that_the_doctor_advises_is_there() -> None:
    folder = Path(openfang.__path__[0]) / "app" / "home"
    text = "\n".join(file.read_text() for file in folder.glob("*.py"))
    advised = set(re.findall(r"openfang ([a-z]+)\b(?: ([a-z]+)\b)?", text))
    lost = {
        (group, name)
        for group, name in advised
        if group not in _COMMANDS and name not in _GROUPS.get(group, ("", {}))[1]
    }
    assert (len(advised) > 8, lost) == (True, set())
