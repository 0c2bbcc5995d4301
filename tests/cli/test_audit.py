"""Reading, checking and exporting the audit log."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from openfang.audit.chain import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli, Ran

pytestmark = pytest.mark.requirement("C13.5")

INSERTED = """
UPDATE audit SET seq = -seq - 1 WHERE seq > 4;
UPDATE audit SET seq = -seq WHERE seq < 0;
INSERT INTO audit SELECT node, 5, at, event, level, call_id, task_id, payload, context, hash
FROM audit WHERE seq = 4
"""
SWAPPED = """
UPDATE audit SET seq = -4 WHERE seq = 4;
UPDATE audit SET seq = 4 WHERE seq = 5;
UPDATE audit SET seq = 5 WHERE seq = -4
"""
SEED = Path(__file__).parents[1] / "data/seeds/003-15-queries.sql"


@pytest.fixture(scope="module")
def used(openfang: Cli) -> Cli:
    """A home in which something happened."""
    openfang.batch(
        {"tool": "memory_store", "arguments": {"key": f"k{number}", "value": number}}
        for number in range(30)
    )
    openfang.call("file_write", "--mode", "planning", path="a", content="b")
    return openfang


@pytest.fixture(scope="module")
def once_used(make_home: Callable[[], Cli]) -> Cli:
    """A home whose log tests change, each a copy of it."""
    cli = make_home()
    cli.batch([{"tool": "system_time"}] * 3)
    return cli


@pytest.mark.requirement("C13.2")
def test_an_untouched_log_is_intact(used: Cli) -> None:
    ran = used("audit", "verify", "--json")
    assert (ran.code, ran.json["intact"], ran.json["findings"]) == (0, True, [])
    (head,) = ran.json["heads"].values()
    assert head == ran.json["records"] >= 92
    assert "The audit log is intact." in used("audit", "verify").out


@pytest.mark.requirement("C13.2")
@pytest.mark.parametrize(
    ("tamper", "kind"),
    [
        ("UPDATE audit SET payload = '{}' WHERE seq = 4", "altered"),
        ("UPDATE audit SET at = at + 1 WHERE seq = 4", "altered"),
        ("DELETE FROM audit WHERE seq = 4", "missing"),
        ("DELETE FROM audit WHERE seq > 4", "cut"),
        (INSERTED, "altered"),
        (SWAPPED, "altered"),
    ],
    ids=["edit", "time", "delete", "tail", "insert", "swap"],
)
def test_a_log_that_was_changed_is_found_out(
    once_used: Cli, tmp_path: Path, tamper: str, kind: str
) -> None:
    ran = tampered(once_used, tmp_path, lambda database: database.executescript(tamper))
    assert (ran.code, ran.json["intact"]) == (1, False)
    assert kind in {finding["kind"] for finding in ran.json["findings"]}


@pytest.mark.requirement("C13.2")
def test_a_log_that_was_written_anew_as_a_whole_is_found_out(
    once_used: Cli, tmp_path: Path
) -> None:
    def rewrite(database: sqlite3.Connection) -> None:
        before = bytes(32)
        for row in database.execute("SELECT * FROM audit ORDER BY seq").fetchall():
            node, seq, at, *line, _, context, _ = row
            before = digest(node, seq, at, (*line, "{}", context), before)
            database.execute(
                "UPDATE audit SET payload = '{}', hash = ? WHERE seq = ?", (before, seq)
            )
        database.execute("DELETE FROM checkpoints")

    ran = tampered(once_used, tmp_path, rewrite)
    assert (ran.code, {one["kind"] for one in ran.json["findings"]}) == (1, {"rewritten"})


def tampered(used: Cli, folder: Path, tamper: Callable[[sqlite3.Connection], object]) -> Ran:
    """Change the log of a copy of a home, and have it verified."""
    home = shutil.copytree(used.home, folder / "home")
    with closing(sqlite3.connect(home / "openfang.db", isolation_level=None)) as database:
        tamper(database)
    return replace(used, home=home)("audit", "verify", "--json")


@pytest.mark.requirement("C13.3")
@pytest.mark.parametrize("number", [0, 1])
def test_the_seeds_queries_run_as_they_are_written(used: Cli, number: int) -> None:
    queries = re.split(r"(?<=;)\n", SEED.read_text().strip())
    assert len(queries) == 2
    ran = used("audit", "sql", "-", "--json", stdin=queries[number])
    assert (ran.code, ran.json) == (0, [])
    ours = queries[number].replace("'mcp'", "'builtin'")
    found = used("audit", "sql", ours, "--json").json
    assert len(found) == (60, 1)[number]
    columns = "audit_id task_id level event_type payload context created_at"
    assert list(found[0]) == columns.split()


@pytest.mark.requirement("C13.1", "C13.3")
@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM audit",
        "PRAGMA journal_mode = DELETE",
        "ATTACH DATABASE 'elsewhere.db' AS elsewhere",
        "SELECT 1; DELETE FROM audit",
        "SELECT nothing FROM nowhere",
        "CREATE TABLE mine (a)",
        "",
    ],
)
def test_a_query_only_reads(used: Cli, query: str) -> None:
    ran = used("audit", "sql", query, "--json")
    assert ran.code == (0 if not query else 1)
    assert "Traceback" not in ran.err
    assert used("audit", "verify").code == 0


@pytest.mark.parametrize("after", ["-1", "99999999999999999999"])
def test_a_number_that_no_record_has_is_wrong_usage(used: Cli, after: str) -> None:
    assert used("audit", "search", "--after", after).code == 2
    assert used("audit", "export", "--after", after).code == 2


def test_a_query_comes_as_a_table_too(used: Cli) -> None:
    ran = used("audit", "sql", "SELECT event_type, COUNT(*) AS n FROM task_audits GROUP BY 1")
    assert ran.out.splitlines()[0].split() == ["EVENT_TYPE", "N"]
    assert ["policy_violation", "1"] in [line.split() for line in ran.out.splitlines()]


@pytest.mark.requirement("C13.2")
def test_an_export_is_verified_where_no_home_is(used: Cli, tmp_path: Path) -> None:
    file, key = tmp_path / "log.jsonl", used("audit", "verify", "--json").json["key"]
    assert used("audit", "export", str(file), "--with-checkpoints").code == 0
    nowhere = {"OPENFANG_HOME": str(tmp_path / "none"), "HOME": str(tmp_path)}
    check = ("audit", "verify", "--file", str(file), "--key", key, "--json")
    ran = used(*check, env=nowhere)
    assert (ran.code, ran.json["intact"]) == (0, True)
    assert ran.json["records"] >= 92
    file.write_text(file.read_text().replace('"k7', '"k8').replace("k7", "k8", 1))
    ran = used(*check, env=nowhere)
    assert (ran.code, ran.json["findings"][0]["kind"]) == (1, "altered")
    assert not (tmp_path / "none").exists()
    assert used("audit", "verify", "--file", str(file), env=nowhere).code == 2
    assert used("audit", "verify", "--key", key).code == 2
    assert used("audit", "export", str(file)).code == 0
    ran = used(*check, env=nowhere)
    assert ran.code == 1
    forged, altered = [one["text"] for one in ran.json["findings"]]
    assert forged.endswith("--with-checkpoints")
    assert altered.startswith("lines 1 to ")
    assert used("audit", "verify", "--file", str(tmp_path / "x"), "--key", key).code == 2
    assert used("audit", "export", "--with-checkpoints", "--format", "cef").code == 2


@pytest.mark.requirement("C13.5")
def test_the_log_is_exported_for_other_programs(used: Cli) -> None:
    lines = used("audit", "export").lines
    cef = used("audit", "export", "--format", "cef").out.splitlines()
    assert all(line.startswith("CEF:0|OpenFang|openfang|") for line in cef)
    assert len(cef) >= len(lines)
    (body, *_) = used("audit", "export", "--format", "otlp").lines
    (logs,) = body["resourceLogs"]
    assert len(logs["scopeLogs"][0]["logRecords"]) >= len(lines)


@pytest.mark.requirement("C13.5")
def test_the_whole_log_is_exported_as_json_lines(used: Cli, tmp_path: Path) -> None:
    ran = used("audit", "export")
    assert [line["audit_id"] for line in ran.lines] == list(range(1, len(ran.lines) + 1))
    file = tmp_path / "log.jsonl"
    assert used("audit", "export", str(file), "--after", "10").code == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == ran.lines[10:]
    assert used("audit", "export", str(tmp_path)).code == 2


def test_a_reader_that_goes_away_is_no_error(used: Cli) -> None:
    command = f"{' '.join(used.command('audit', 'export'))} | head -n 1 | grep -c key_created"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=used.environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"1\n")
    assert b"Traceback" not in done.stderr


def test_the_tail_is_the_newest_records(used: Cli) -> None:
    newest = used("audit", "tail", "-n", "3", "--json").lines
    assert newest == used("audit", "export").lines[-3:]
    table = used("audit", "tail", "-n", "2").out.splitlines()
    assert table[0].split() == ["NUMBER", "TIME", "EVENT", "LEVEL", "CALLER", "TOOL", "WHAT"]
    assert "Planning mode cannot use tools" in table[2]


def test_the_tail_follows(fresh: Cli) -> None:
    following = fresh.start("audit", "tail", "--follow", "--json")
    try:
        fresh.call("system_time")
        assert following.stdout
        kinds = [json.loads(following.stdout.readline())["event_type"] for _ in range(4)]
    finally:
        following.kill()
        following.communicate()
    assert kinds[0] == "key_created"
    assert kinds[1:] == ["policy_decision", "tool_invocation_start", "tool_invocation_end"]


def test_a_search_joins_its_conditions(used: Cli) -> None:
    found = used(
        *("audit", "search", "--event", "tool_invocation_start", "--tool", "memory_store"),
        *("--caller", "admin", "--text", '"k7"', "--json"),
    ).lines
    assert [event["payload"]["arguments"] for event in found] == [{"key": "k7", "value": 7}]
    violations = used("audit", "search", "--level", "warning", "--json").lines
    assert [event["payload"]["rule"] for event in violations] == ["planning_mode"]
    assert used("audit", "search", "--task", "none", "--json").out == ""


@pytest.mark.requirement("C7.7")
def test_a_task_is_found_by_its_id(used: Cli) -> None:
    used.call("system_time", "--task", "task-1")
    found = used("audit", "search", "--task", "task-1", "--json").lines
    assert {event["task_id"] for event in found} == {"task-1"}


@pytest.mark.requirement("C13.6")
def test_a_receipt_is_proven(used: Cli) -> None:
    audit = used.call("system_time").json["audit"]
    ran = used("audit", "prove", str(audit["end"]), audit["hash"], "--json")
    assert (ran.code, ran.json["proven"]) == (0, True)
    assert used("audit", "prove", str(audit["start"]), audit["hash"]).code == 1
    assert used("audit", "prove", str(audit["end"]), "ab" * 32).code == 1
    assert used("audit", "prove", str(audit["end"]), "x").code == 2
