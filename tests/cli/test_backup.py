"""Backup and restore as a person uses them, beside processes that write, and what doctor adds."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C13.2")

_BUSY = """
[limits]
cells_per_minute = 100_000_000
burst = 100_000_000

[guard]
tool_calls = 1_000_000

[audit]
checkpoint_every = 10
"""
_OPEN = """
SELECT call_id FROM audit WHERE event = 'tool_invocation_start'
EXCEPT SELECT call_id FROM audit WHERE event = 'tool_invocation_end'
"""
_STORED = """
SELECT substr(name, 1, instr(name, '.') - 1) AS writer, COUNT(*) AS n FROM memory GROUP BY writer
"""


def until(seen: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Writer:
    """A process that makes one call after the other while it is let."""

    def __init__(self, openfang: Cli, folder: Path, name: str) -> None:
        self.answers = folder / name
        with self.answers.open("wb") as out:
            self.process = subprocess.Popen(
                openfang.command("tools", "batch", "-"),
                stdin=subprocess.PIPE,
                stdout=out,
                env=openfang.environment(),
            )
        self._name = name
        self._stop = threading.Event()
        self._let = threading.Event()
        self._let.set()
        self._thread = threading.Thread(target=self._feed)
        self._thread.start()

    def _feed(self) -> None:
        number = 0
        assert self.process.stdin
        while not self._stop.wait(0.01):  # a pace that leaves the machine to the others
            self._let.wait()
            number += 1
            arguments = {"key": f"{self._name}.{number}", "value": number}
            line = json.dumps({"tool": "memory_store", "arguments": arguments})
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    @property
    def answered(self) -> int:
        return self.answers.read_bytes().count(b"\n")

    def let(self, *, write: bool) -> None:
        """Go on, or pause: what reads the copy should not wait for who writes."""
        if write:
            self._let.set()
        else:
            self._let.clear()

    def end(self) -> int:
        self._stop.set()
        self._let.set()
        self._thread.join()
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(timeout=60)


@pytest.fixture
def writers(fresh: Cli, tmp_path: Path) -> Iterator[list[Writer]]:
    """Two processes that write to the home themselves, and one that does by way of a daemon."""
    fresh.configure(_BUSY)
    running = [Writer(fresh, tmp_path, name) for name in ("one", "two")]
    try:
        until(lambda: all(writer.answered for writer in running))
        for writer in running:
            writer.let(write=False)
        with serving(fresh) as daemon:
            running.append(Writer(fresh, tmp_path, str(daemon.pid)))
            until(lambda: running[-1].answered)
            yield running
    finally:
        for writer in running:
            writer.process.kill()
            writer.end()


def elsewhere(home: Path) -> dict[str, str]:
    return {"OPENFANG_HOME": str(home)}


@pytest.mark.requirement("C13.1", "C7.13")
def test_a_backup_beside_processes_that_write_is_whole_and_comes_back_when_they_end(
    fresh: Cli, writers: list[Writer], tmp_path: Path
) -> None:
    first = whole_backup(fresh, writers, tmp_path / "first")
    second = whole_backup(fresh, writers, tmp_path / "second")
    assert second["head"] > first["head"] + 20
    assert [writer.process.poll() for writer in writers] == [None, None, None]
    *direct, over_daemon = writers
    before = sorted(path.name for path in fresh.home.parent.iterdir())
    refused = fresh("restore", first["file"])
    assert f"in use by a daemon, process {over_daemon.answers.name}." in refused.err
    assert "way out: openfang stop" in refused.err
    assert over_daemon.end() == 0
    assert fresh("stop").code == 0
    refused = fresh("restore", first["file"])
    assert any(f"(pid {writer.process.pid})" in refused.err for writer in direct)
    assert sorted(path.name for path in fresh.home.parent.iterdir()) == before
    assert [writer.end() for writer in direct] == [0, 0]
    assert fresh("audit", "verify").code == 0
    done = fresh("restore", second["file"], "--json").json
    assert fresh("audit", "verify").code == 0
    (restored,) = fresh("audit", "search", "--event", "home_restored", "--json").lines
    assert restored["audit_id"] == done["record"] == second["head"] + 1
    assert restored["payload"]["head"] == second["head"]
    assert fresh("audit", "verify", env=elsewhere(Path(done["aside"]))).code == 0


def whole_backup(openfang: Cli, writers: list[Writer], folder: Path) -> dict[str, Any]:
    """Make a backup, and see that what was acknowledged before it is in what it restores."""
    answered = {writer.answers.name: writer.answered for writer in writers}
    for writer in writers:
        writer.let(write=True)
    ran = openfang("backup", f"{folder}.tar.gz", "--json")
    assert ran.code == 0, ran.err
    until(lambda: all(writer.answered > answered[writer.answers.name] for writer in writers))
    for writer in writers:
        writer.let(write=False)
    new = elsewhere(folder)
    assert openfang("restore", ran.json["file"], env=new).code == 0
    found = openfang("audit", "verify", "--json", env=new)
    assert (found.code, found.json["findings"]) == (0, [])
    stored = dict(replace(openfang, home=folder).stored(_STORED))
    assert all(count >= answered[writer] for writer, count in stored.items())
    assert stored.keys() == answered.keys()
    assert openfang("audit", "sql", _OPEN, "--json", env=new).json == []
    return ran.json


@pytest.mark.requirement("C18.3")
def test_a_backup_tells_where_it_is_and_no_secret(openfang: Cli, tmp_path: Path) -> None:
    done = subprocess.run(
        openfang.command("backup"),
        cwd=tmp_path,
        env=openfang.environment(),
        capture_output=True,
        check=True,
    )
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("openfang-node-")
    assert file.name.endswith("Z.tar.gz")
    assert file.stat().st_mode & 0o777 == 0o600
    said = done.stdout + done.stderr
    assert str(file).encode() in done.stdout
    assert b"has the node's keys" in done.stderr
    assert (openfang.home / "key").read_bytes().strip() not in said
    assert (openfang.home / "master.key").read_bytes() not in said
    listed = subprocess.run(["tar", "tzf", file], capture_output=True, check=True, text=True)
    assert {"backup.json", "key", "master.key", "openfang.db"} <= set(listed.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("backup", "-"), 2, "goes to a file"),
        (("restore", "-"), 2, "read from a file"),
        (("restore",), 2, "way out: "),
        (("backup", "/nowhere/at/all.tar.gz"), 1, "There is no folder /nowhere/at."),
        (("restore", "/nowhere/at/all.tar.gz"), 1, "There is no file"),
        (("restore", "/etc/hostname"), 1, "way out: "),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(
    openfang: Cli, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = openfang(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert openfang("audit", "verify").code == 0


def test_a_backup_told_to_end_leaves_nothing(fresh: Cli, tmp_path: Path) -> None:
    (fresh.home / "workspaces").mkdir()
    with (fresh.home / "workspaces/huge").open("wb") as file:
        file.truncate(50_000_000_000)
    for told, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        running = fresh.start("backup", str(tmp_path))
        until(lambda: list(tmp_path.glob(".openfang-backup-*/archive")))
        running.send_signal(told)
        _, errors = running.communicate(timeout=30)
        assert running.returncode == code
        assert b"Traceback" not in errors
        assert list(tmp_path.iterdir()) == []
    states = [
        event["payload"]["state"]
        for event in fresh("audit", "search", "--event", "home_backup", "--json").lines
    ]
    assert states == ["started", "failed"] * 2


def test_checkpoints_outside_the_home_tell_of_what_a_restore_took_back(
    fresh: Cli, tmp_path: Path
) -> None:
    fresh.configure(f'[audit]\ncheckpoint_file = "{tmp_path / "outside.jsonl"}"')
    made = fresh("backup", str(tmp_path), "--json")
    assert "outside.jsonl lies outside the home" in made.err
    fresh.call("system_time")
    ran = fresh("restore", made.json["file"])
    assert ran.code == 0
    assert "the tail was cut" in ran.err
    found = fresh("audit", "verify", "--json")
    assert found.code == 1
    assert "cut" in {finding["kind"] for finding in found.json["findings"]}


@pytest.mark.requirement("C2.6")
def test_no_command_goes_back_to_an_older_schema(fresh: Cli, tmp_path: Path) -> None:
    backup = fresh("backup", str(tmp_path), "--json").json["file"]
    with closing(sqlite3.connect(fresh.home / "openfang.db", isolation_level=None)) as database:
        database.execute("INSERT INTO migrations VALUES (999, 0)")
    before = (fresh.home / "openfang.db").read_bytes()

    def refused(ran: Ran) -> bool:
        return ran.code == 1 and "newer version" in ran.err and "upgrade" in ran.err

    assert refused(fresh("tools", "list"))
    assert refused(fresh("tools", "call", "system_time"))
    assert refused(fresh("audit", "verify"))
    assert refused(fresh("backup", str(tmp_path / "second.tar.gz")))
    assert refused(fresh("init"))
    assert refused(fresh("start"))
    assert refused(fresh("start", "--detach"))
    assert refused(fresh("up", "--yes", "--no-import", "--no-connect"))
    assert refused(fresh("mcp"))
    failed = {check["check"]: check for check in fresh("doctor", "--json").json}["schema"]
    assert (failed["health"], failed["fix"]) == ("fail", "upgrade openfang")
    assert (fresh.home / "openfang.db").read_bytes() == before
    assert not (tmp_path / "second.tar.gz").exists()
    # Going back to a backup of this version is the way out, and keeps what was newer.
    done = fresh("restore", backup, "--json")
    assert done.code == 0, done.out
    assert (Path(done.json["aside"]) / "openfang.db").read_bytes() == before
    assert fresh("audit", "verify").code == 0


def checks(openfang: Cli, **env: str) -> dict[str, dict[str, Any]]:
    return {check["check"]: check for check in openfang("doctor", "--json", env=env).json}


@pytest.mark.requirement("C2.8")
def test_the_doctor_looks_at_the_daemon_and_at_its_port(fresh: Cli) -> None:
    assert checks(fresh)["daemon"]["text"].startswith("none runs")
    with serving(fresh) as daemon:
        found = checks(fresh)["daemon"]
        assert (found["health"], f"process {daemon.pid}," in found["text"]) == ("ok", True)
        address = found["text"].partition(",")[0].removeprefix("http://")
        ours = checks(fresh, OPENFANG_LISTEN=address)["api_listen"]
        assert (ours["health"], ours["text"]) == ("ok", f"{address} is our daemon's")
    left = {
        "pid": 4_000_000,
        "listen_addr": "127.0.0.1:9",
        "started_at": "2026-01-01T00:00:00Z",
        "version": "0.0.1",
        "platform": "linux",
    }
    (fresh.home / "daemon.json").write_text(json.dumps(left))
    stale = checks(fresh)["daemon"]
    assert (stale["health"], "4000000" in stale["text"]) == ("warn", True)
    assert stale["fix"].startswith(f"rm {fresh.home / 'daemon.json'}")
    foreign = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0));"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", foreign], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout
    port = int(holder.stdout.readline())
    try:
        taken = checks(fresh, OPENFANG_LISTEN=f"127.0.0.1:{port}")["api_listen"]
    finally:
        holder.communicate()
    assert (taken["health"], f"(pid {holder.pid})" in taken["text"]) == ("warn", True)
    assert taken["fix"].startswith(f"kill {holder.pid}, or change api_listen")


@pytest.mark.requirement("C2.8")
def test_the_doctor_tells_of_limits_and_of_what_was_left_behind(fresh: Cli) -> None:
    found = checks(fresh)
    assert {"wal", "file system", "open files", "disk"} <= found.keys()
    assert "restore" not in found
    left = fresh.home.parent / f".{fresh.home.name}.restore-abc"
    left.mkdir()
    assert str(left) in checks(fresh)["restore"]["text"]
    with closing(sqlite3.connect(fresh.home / "openfang.db", isolation_level=None)) as database:
        database.execute("UPDATE audit SET at = at + 5000000000 WHERE seq = 1")
        database.execute(
            "INSERT INTO audit SELECT node, 2, at - 4000000000, event, level, "
            "call_id, task_id, payload, context, hash FROM audit WHERE seq = 1"
        )
        database.execute("UPDATE audit SET at = at - 90000000000")
    assert checks(fresh)["clock"]["health"] == "warn"
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -n 900; exec {' '.join(fresh.command('doctor', '--json'))}"],
        env=fresh.environment(),
        capture_output=True,
        check=False,
    )
    narrow = {check["check"]: check for check in json.loads(limited.stdout)}["open files"]
    assert (narrow["health"], narrow["text"]) == ("warn", "900 at once")


@pytest.mark.needs("unshare", "mount")
@pytest.mark.requirement("C2.8")
def test_the_doctor_warns_of_a_file_system_that_is_not_local(fresh: Cli, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"ext4 / ext4 rw 0 0\nserver {fresh.home.parent} nfs4 rw 0 0\n")
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    command = " ".join(fresh.command("doctor", "--json"))
    done = subprocess.run(
        [*unshare, "bash", "-c", f"mount --bind {mounts} /proc/$$/mounts && exec {command}"],
        env=fresh.environment(),
        capture_output=True,
        check=False,
    )
    assert done.stdout, done.stderr
    found = {check["check"]: check for check in json.loads(done.stdout)}["file system"]
    assert (found["health"], "nfs4" in found["text"]) == ("warn", True)
    assert "OPENFANG_HOME" in found["fix"]
