"""Commands over a daemon: the same words, at less cost, and what happens when one of them ends."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Cli, Ran
    from tests.forked import Piped, Process

pytestmark = pytest.mark.requirement("C12.5")

_HEAVY = {"pydantic", "aiohttp", "starlette", "uvicorn", "cryptography", "sqlite3", "re2", "yaml"}
_OURS = ("pipeline", "storage", "sources", "registry", "policy", "guard", "audit", "edges")
_SLEEP = """
[tools.shell_exec]
allow_shell = true

[limits]
cells_per_minute = 1_000_000
burst = 1_000_000
"""


@pytest.fixture(scope="module")
def served(make_home: Callable[[], Cli]) -> Iterator[Cli]:
    """A home with a daemon, for tests that leave it as it is."""
    cli = make_home()
    cli.configure(_SLEEP)
    with serving(cli):
        yield cli


@pytest.mark.parametrize(
    "command",
    [
        ("tools", "call", "system_time", "--json"),
        ("keys", "list"),
        ("audit", "verify"),
    ],
)
def test_a_command_over_a_daemon_imports_nothing_of_the_node(
    served: Cli, command: tuple[str, ...]
) -> None:
    found = served.imported(*command)
    assert not found & _HEAVY
    assert not {name for name in found if name.startswith(tuple(f"openfang.{o}" for o in _OURS))}


def cpu_seconds(run: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_call_over_a_daemon_is_clearly_cheaper(served: Cli, fresh: Cli) -> None:
    call = ("tools", "call", "system_time")
    over = min(cpu_seconds(lambda: served.whole(*call)) for _ in range(2))
    within = min(cpu_seconds(lambda: fresh.whole(*call)) for _ in range(2))
    assert over < 0.7 * within


def edges(cli: Cli) -> list[str]:
    started = cli("audit", "search", "--event", "tool_invocation_start", "--json").lines
    return [event["context"]["edge"] for event in started]


def test_a_daemon_is_used_while_it_runs_and_no_longer(fresh: Cli) -> None:
    assert fresh.call("system_time").code == 0
    with serving(fresh):
        assert fresh.call("system_time").code == 0
    assert fresh.call("system_time").code == 0
    assert edges(fresh) == ["cli", "api", "cli"]


_COMMANDS = (
    "tools list --json --all",
    "tools show shell_exec --json",
    "tools show a/b%20c?d#e",
    "tools call nothing --json",
    "tools call file_read --args {}",
    "tools call file_write --mode planning --args {} --json",
    "explain shell_exec --mode planning",
    "results show openfang://results/nothing --json",
    "approvals list --all --json",
    "approvals show nothing --json",
    "keys list --json",
    "keys create taken",
    "keys revoke nobody",
    "spec list",
    "audit search --event key_created",
    "audit search --level error",
    "audit export",
    "audit sql SELECT/**/hash,seq/**/FROM/**/audit/**/LIMIT/**/2 --json",
    "audit sql DELETE --json",
)


@pytest.mark.requirement("C12.5", "C15.1", "C18.1")
def test_every_word_is_the_same_over_a_daemon_and_in_process(fresh: Cli, tmp_path: Path) -> None:
    frozen(fresh, tmp_path)
    fresh("keys", "create", "taken")
    fresh.call("shell_exec", command="date")

    def said() -> dict[str, Ran]:
        return {command: fresh(*command.split()) for command in _COMMANDS}

    within = said()
    with serving(fresh):
        over = said()
    # What was refused the first time is on record the second time.
    first, second = within.pop("audit export"), over.pop("audit export")
    assert second.out.startswith(first.out)
    assert over == within


def test_a_call_whose_daemon_is_killed_may_have_run_and_is_not_made_again(
    fresh: Cli, tmp_path: Path
) -> None:
    fresh.configure(_SLEEP)
    spec = frozen(fresh, tmp_path)
    with serving(fresh) as daemon:
        running = start_sleeping(fresh, spec, "55.5", daemon)
        daemon.kill()
        output, _ = running.communicate(timeout=20)
    problem = json.loads(output)
    assert running.returncode == 1
    assert problem["title"] == "daemon unreachable"
    assert "it may have run" in problem["detail"]
    assert "openfang audit search --tool shell_exec" in problem["way_out"]
    found = fresh("audit", "search", "--tool", "shell_exec", "--json").lines
    kinds = [event["event_type"] for event in found]
    assert kinds == ["policy_decision", "tool_invocation_start", "tool_invocation_end"]
    assert found[-1]["payload"]["outcome"] == "interrupted"


@pytest.mark.parametrize(("told", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_told_to_end_takes_its_call_along(
    served: Cli, tmp_path: Path, told: signal.Signals, code: int
) -> None:
    seconds = f"56.{told.value}"
    running = start_sleeping(served, frozen(served, tmp_path), seconds, None)
    running.send_signal(told)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == code
    assert b"Traceback" not in errors
    assert until(lambda: ended(served, seconds))["payload"]["outcome"] == "cancelled"
    assert not sleeping(seconds)


def frozen(cli: Cli, folder: Path) -> str:
    plan = folder / "plan"
    plan.write_text("sleep")
    return cli("spec", "freeze", str(plan)).out.strip()


def start_sleeping(cli: Cli, spec: str, seconds: str, daemon: Process | None) -> Piped:
    """Start a call that sleeps, and wait until it does."""
    command = json.dumps({"command": ["sleep", seconds]})
    running = cli.start("tools", "call", "shell_exec", "--spec", spec, "--args", command, "--json")
    assert daemon is None or daemon.poll() is None
    until(lambda: sleeping(seconds))
    return running


def sleeping(seconds: str) -> list[Path]:
    """The processes that sleep so long."""
    wanted = f"sleep\0{seconds}\0".encode()
    running = Path("/proc").glob("[0-9]*/cmdline")
    return [file for file in running if _content(file).endswith(wanted)]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def ended(cli: Cli, seconds: str) -> Any:
    """The ending of the call that slept so long, once there is one."""
    started = cli("audit", "search", "--text", f'"{seconds}"', "--json").lines
    calls = {event["call_id"] for event in started}
    found = cli("audit", "search", "--event", "tool_invocation_end", "--json").lines
    return next((event for event in found if event["call_id"] in calls), None)


def until(seen: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (found := seen()):
        assert time.monotonic() < deadline
    return found


def test_a_parallel_batch_uses_several_connections(served: Cli, tmp_path: Path) -> None:
    wait = "while [ ! -e mark ]; do sleep 0.01; done"
    calls = [
        {"tool": "shell_exec", "arguments": {"command": command}}
        for command in (wait, wait, wait, "touch mark")
    ]
    ran = served.batch(calls, "--parallel", "4", "--spec", frozen(served, tmp_path))
    assert [line.get("outcome") for line in ran.lines] == ["ok"] * 4


def test_the_tail_follows_over_a_daemon(served: Cli) -> None:
    following = served.start("audit", "tail", "-n", "1", "--follow", "--json")
    try:
        assert following.stdout
        following.stdout.readline()
        body = served.call("system_time").json
        while json.loads(following.stdout.readline())["call_id"] != body["call_id"]:
            pass
    finally:
        following.kill()
        following.communicate()


@pytest.mark.requirement("C8.1", "C8.2")
def test_a_tool_that_calls_itself_reaches_the_depth_limit_over_a_daemon(
    fresh: Cli, tmp_path: Path
) -> None:
    program = Path(sys.executable)
    fresh.configure(
        f"[tools.shell_exec]\nprograms = [{json.dumps(program.name)}]\n"
        'env = ["OPENFANG_HOME", "PYTHONPYCACHEPREFIX"]\nsandbox = "off"'
    )
    arguments = tmp_path / "arguments.json"
    again = ("tools", "call", "shell_exec", "--args-file", str(arguments))
    again = (*again, "--spec", frozen(fresh, tmp_path))
    arguments.write_text(json.dumps({"command": [program.name, *fresh.command(*again)[1:]]}))
    found = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    with serving(fresh, found):
        # Nobody has signed the chain of a program that we started: what it runs, a person allows.
        assert "Exit code: 5" in fresh(*again).out
        (question,) = fresh("approvals", "list", "--json").json
        assert fresh("approvals", "approve", question["id"], "--scope", "rule").code == 0
        ran = fresh(*again)
        assert ran.code == 4
        assert "Exit code: 3" in ran.out
    assert edges(fresh) == ["api"] * 6
    (refused,) = fresh("audit", "search", "--event", "policy_violation", "--json").lines
    assert (refused["payload"]["rule"], refused["context"]["depth"]) == ("recursion_limit", 6)
    traces = fresh.sql(
        "SELECT DISTINCT context->>'trace' AS trace FROM task_audits WHERE trace <> ''"
    )
    assert len(traces) == 2


@pytest.mark.requirement("C2.9")
def test_a_reload_takes_a_good_file_and_refuses_a_bad_one_with_its_line(fresh: Cli) -> None:
    config = fresh.home / "config.toml"
    before = config.read_text()
    assert fresh("config", "reload", "--json").json is None
    with serving(fresh):
        config.write_text(before + '[tools]\ndisabled = ["system_time"]\n')
        assert fresh("config", "reload", "--json").json["state"]["state"] == "in force"
        assert fresh.call("system_time").json["rule"] == "tool_disabled"
        config.write_text(before + "[tools]\ntimeout_secs = true\n")
        refused = fresh("config", "reload", "--json")
        status = fresh("status", "--json").json["config"]
        assert (refused.code, refused.json["status"]) == (1, 422)
        assert "config.toml:" in refused.json["detail"]
        assert (status["state"], status["problems"][0]["key"]) == ("rejected", "tools.timeout_secs")
        assert status["problems"][0]["line"] == len(before.splitlines()) + 2
        assert fresh.call("system_time").json["rule"] == "tool_disabled"
