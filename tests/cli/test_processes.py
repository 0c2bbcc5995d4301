"""Several processes on one home, one that is killed, and one that calls itself."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C7.13")

_RAISED = """
[limits]
cells_per_minute = 1_000_000
burst = 1_000_000

[guard]
tool_calls = 10_000
"""
_OPEN = """
SELECT COUNT(*) AS n FROM audit AS started WHERE event = 'tool_invocation_start' AND NOT EXISTS (
  SELECT 1 FROM audit AS ended WHERE ended.event = 'tool_invocation_end'
  AND ended.call_id = started.call_id)
"""


def lines(name: str, count: int) -> bytes:
    calls = (
        {"tool": "memory_store", "arguments": {"key": f"{name}.{number}", "value": number}}
        for number in range(count)
    )
    return "\n".join(json.dumps(call) for call in calls).encode()


@pytest.mark.requirement("C13.1", "C7.10")
def test_ten_processes_write_one_unbroken_chain(fresh: Cli) -> None:
    running = [fresh.start("tools", "batch", "-") for _ in range(10)]
    for number, process in enumerate(running):
        process.stdin.write(lines(f"p{number}", 20))
        process.stdin.close()
    outputs = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 10, outputs
    assert sum(len(output.splitlines()) for output, _ in outputs) == 200
    found = fresh("audit", "verify", "--json")
    assert (found.code, found.json["intact"]) == (0, True)
    (row,) = fresh.sql("SELECT COUNT(*) AS n, MIN(seq) AS first, MAX(seq) AS last FROM audit")
    assert row == {"n": row["last"], "first": 1, "last": row["last"]}
    assert row["n"] >= 600


@pytest.mark.requirement("C7.13", "C13.1", "C13.2")
def test_a_process_killed_in_the_middle_leaves_no_call_without_an_ending(
    fresh: Cli, tmp_path: Path
) -> None:
    fresh.configure(_RAISED)
    plan = tmp_path / "plan"
    plan.write_text("sleep")
    spec = fresh("spec", "freeze", str(plan)).out.strip()
    running = fresh.start("tools", "batch", "-", "--parallel", "4", "--spec", spec)
    assert running.stdin
    assert running.stdout
    sleeping = {"tool": "shell_exec", "arguments": {"command": ["sleep", "25"]}}
    running.stdin.write(json.dumps(sleeping).encode() + b"\n" + lines("k", 999))
    running.stdin.flush()
    for _ in range(300):
        assert running.stdout.readline()
    running.send_signal(signal.SIGKILL)
    running.communicate()
    found = fresh("audit", "verify", "--json")
    assert (found.code, found.json["intact"]) == (0, True)
    assert fresh.sql(_OPEN) == [{"n": 0}]
    interrupted = fresh("audit", "search", "--text", "interrupted", "--json").lines
    assert 1 <= len(interrupted) <= 4
    assert {event["event_type"] for event in interrupted} == {"tool_invocation_end"}
    assert "builtin:shell_exec" in {event["context"]["tool"] for event in interrupted}
    assert fresh("doctor", "--json").code == 0


@pytest.mark.requirement("C8.2", "C8.1")
def test_a_tool_that_calls_itself_reaches_the_depth_limit(fresh: Cli, tmp_path: Path) -> None:
    program = Path(sys.executable)
    fresh.configure(
        f"[tools.shell_exec]\nprograms = [{json.dumps(program.name)}]\n"
        'env = ["OPENFANG_HOME", "PYTHONPYCACHEPREFIX"]\nsandbox = "off"'
    )
    plan = tmp_path / "plan"
    plan.write_text("recursion")
    spec = fresh("spec", "freeze", str(plan)).out.strip()
    arguments = tmp_path / "arguments.json"
    again = ("tools", "call", "shell_exec", "--spec", spec, "--args-file", str(arguments))
    arguments.write_text(json.dumps({"command": [program.name, *fresh.command(*again)[1:]]}))
    found = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    # Nobody has signed the chain of a program that we started: what it runs, a person allows.
    assert "Exit code: 5" in fresh.whole(*again, env=found).out
    (question,) = fresh("approvals", "list", "--json").json
    assert fresh("approvals", "approve", question["id"], "--scope", "rule").code == 0
    ran = fresh.whole(*again, env=found)
    assert ran.code == 4
    assert "Exit code: 3" in ran.out
    started = fresh.sql(
        "SELECT context->>'depth' AS depth FROM task_audits"
        " WHERE event_type = 'tool_invocation_start' ORDER BY audit_id"
    )
    assert [row["depth"] for row in started] == [1, 1, 2, 3, 4, 5]
    (refused,) = fresh("audit", "search", "--event", "policy_violation", "--json").lines
    assert refused["payload"]["rule"] == "recursion_limit"
    assert refused["context"]["depth"] == 6
    traces = fresh.sql(
        "SELECT DISTINCT context->>'trace' AS trace FROM task_audits WHERE trace <> ''"
    )
    assert len(traces) == 2


@pytest.mark.requirement("C8.1")
def test_the_trace_of_the_environment_is_kept(make_home: Callable[[], Cli]) -> None:
    openfang = make_home()
    trace = "0af7651916cd43dd8448eb211c80319c"
    env = {
        "TRACEPARENT": f"00-{trace}-b7ad6b7169203331-01",
        "X_OPENSTARRY_TRACE_ID": "a trace of theirs".replace(" ", "-"),
    }
    body = openfang.call("system_time", env=env).json
    (start, *_) = openfang("audit", "search", "--call", body["call_id"], "--json").lines
    assert start["context"]["trace"] == trace
    assert start["context"]["x-openstarry-trace-id"] == "a-trace-of-theirs"


def _running(mark: str) -> list[str]:
    """The processes whose command line has these words."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode():
                found.append(folder.name)
    return found


def _until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < deadline


@pytest.mark.requirement("C7.13", "C13.1")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_told_to_end_takes_its_children_along_and_records_it(
    fresh: Cli, tmp_path: Path, told: signal.Signals
) -> None:
    fresh.configure("[tools.shell_exec]\nallow_shell = true")
    plan = tmp_path / "plan"
    plan.write_text("sleep")
    spec = fresh("spec", "freeze", str(plan)).out.strip()
    seconds = f"57.{os.getpid()}{told.value:02}"
    arguments = json.dumps({"command": f"sleep {seconds} & sleep {seconds}; true"})
    running = fresh.start("tools", "call", "shell_exec", "--spec", spec, "--args", arguments)
    _until(lambda: len(_running(f"sleep {seconds} ")) >= 4)
    running.send_signal(told)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 128 + told
    assert b"Traceback" not in errors
    assert not _running(f"sleep {seconds}")
    assert fresh.sql(_OPEN) == [{"n": 0}]
    (ended,) = fresh("audit", "search", "--event", "tool_invocation_end", "--json").lines
    assert ended["payload"]["outcome"] == "cancelled"
    assert fresh.stored("SELECT id FROM processes WHERE ended_at IS NULL") == []


def test_a_batch_that_waits_for_its_input_ends_when_told_to(fresh: Cli) -> None:
    running = fresh.start("tools", "batch", "-")
    assert running.stdin
    assert running.stdout
    running.stdin.write(b'{"tool": "system_time"}\n')
    running.stdin.flush()
    running.stdout.readline()
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=20) == 143
    running.communicate()
