"""What starts, how fast, and what it imports."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import openfang as package
from openfang.cli.app import _CHAPTERS, _COMMANDS, _GROUPS
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C19.1")

_HEAVY = {"cyclopts", "rich", "pydantic", "orjson", "yaml", "anyio", "aiohttp", "cryptography"}


def test_the_version_is_told_without_the_command_library(openfang: Cli) -> None:
    assert openfang.whole("--version").out == f"{__version__}\n"
    assert not openfang.imported("--version") & _HEAVY


def test_listing_tools_to_a_pipe_imports_nothing_that_it_does_not_use(openfang: Cli) -> None:
    unused = {"rich", "yaml", "aiohttp", "cryptography.hazmat.primitives.asymmetric.ed25519"}
    # What starts programs, connects servers, plans and speaks with a daemon.
    unused |= {
        "openfang.agents.code.programs",
        "openfang.agents.planner.model",
        "openfang.app.confine",
        "openfang.app.remote.session",
        "openfang.sources.mcp.source",
    }
    assert not openfang.imported("tools", "list") & unused


def test_a_start_needs_no_command_library(fresh: Cli) -> None:
    try:
        imported = fresh.imported("start", "--detach", "--any-port", "--listen=127.0.0.1:0")
    finally:
        fresh("stop")
    assert not imported & {"cyclopts", "rich"}


@pytest.mark.parametrize(
    "options", [("--listen",), ("--listen", "--init"), ("--init=x",), ("--nowhere",), ("here",)]
)
def test_a_start_that_says_something_else_is_wrong_usage(
    fresh: Cli, options: tuple[str, ...]
) -> None:
    assert fresh("start", *options).code == 2


def test_help_imports_no_command(openfang: Cli) -> None:
    assert not {name for name in openfang.imported("--help") if name.startswith("openfang.app")}


def cpu_seconds(run: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_commands_start_soon(openfang: Cli) -> None:
    # Twice what was measured on a quiet machine: a busy one must not fail the test.
    assert min(cpu_seconds(lambda: openfang.whole("--version")) for _ in range(3)) < 0.2
    assert min(cpu_seconds(lambda: openfang.whole("tools", "list")) for _ in range(3)) < 1.2


def test_help_names_every_command(openfang: Cli) -> None:
    ran = openfang.whole("--help")
    assert ran.code == 0
    groups = ("approvals", "audit", "config", "keys", "results", "spec", "tools")
    for word in (*groups, "completion", "demo", "doctor", "explain", "init"):
        assert f" {word} " in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("tools", "call"),
        ("tools", "call", "system_time", "--bogus"),
        ("tools", "call", "system_time", "--mode", "dreaming"),
        ("tools", "call", "system_time", "--wait", "nan"),
        ("tools", "call", "system_time", "--blacklist", "fs.eat"),
        ("tools", "call", "system_time", "--args", "{}", "--args-file", "-"),
        ("tools", "list", "--risk", "SOME"),
        ("audit", "tail", "-n", "0"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_2(openfang: Cli, arguments: tuple[str, ...]) -> None:
    ran = openfang(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "way out: " in ran.err
    assert "Traceback" not in ran.err


def test_a_command_line_that_is_not_text_is_wrong_usage(openfang: Cli) -> None:
    command = [os.fsencode(word) for word in openfang.command("tools", "call")] + [
        b"\xff",
        b"--json",
    ]
    done = subprocess.run(command, capture_output=True, env=openfang.environment(), check=False)
    assert done.returncode == 2
    assert b"UTF-8" in done.stderr


def test_without_a_home_every_command_says_how_to_make_one(openfang: Cli, tmp_path: Path) -> None:
    ran = openfang("tools", "list", env={"OPENFANG_HOME": str(tmp_path / "none")})
    assert ran.code == 1
    assert "openfang init" in ran.err
    assert not (tmp_path / "none").exists()


def test_init_makes_a_home_once(openfang: Cli, tmp_path: Path) -> None:
    elsewhere = {"OPENFANG_HOME": str(tmp_path / "new")}
    first = openfang.whole("init", env=elsewhere)
    key = (tmp_path / "new/key").read_bytes()
    second = openfang("init", env=elsewhere)
    assert (first.code, second.code) == (0, 0)
    assert "The home is made." in first.out
    assert str(tmp_path / "new/key") in first.out
    assert first.out.count("  openfang ") == 3
    assert "nothing was changed" in second.out
    assert (tmp_path / "new/key").read_bytes() == key
    assert (tmp_path / "new/key").stat().st_mode & 0o777 == 0o600


def test_ctrl_c_ends_a_command_with_130_and_leaves_the_home_in_order(openfang: Cli) -> None:
    running = openfang.start("tools", "batch", "-")
    assert running.stdin
    assert running.stdout
    running.stdin.write(b'{"tool": "system_time"}\n')
    running.stdin.flush()
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 130
    assert b"Traceback" not in errors
    assert openfang.stored("SELECT id FROM processes WHERE ended_at IS NULL") == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_streams_are_no_trouble(openfang: Cli, closed: str) -> None:
    command = " ".join(openfang.command("tools", "call", "system_time", "--args-file", "-"))
    done = subprocess.run(
        ["bash", "-c", f"echo '{{}}' | {command} {closed}"],
        env=openfang.environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == (2 if closed == "<&-" else 0)
    assert b"Traceback" not in done.stderr


def test_a_system_that_refuses_is_a_sentence_and_exit_1(fresh: Cli) -> None:
    shutil.rmtree(fresh.home / "run", ignore_errors=True)
    (fresh.home / "run").write_text("a file where a folder should be")
    ran = fresh("tools", "call", "system_time")
    assert ran.code == 1
    assert "error: The system refuses: " in ran.err
    assert "Traceback" not in ran.err


def test_a_checkpoint_that_cannot_be_kept_is_said_and_costs_no_result(fresh: Cli) -> None:
    shutil.rmtree(fresh.home / "checkpoints", ignore_errors=True)
    (fresh.home / "checkpoints").write_text("a file where a folder should be")
    ran = fresh("tools", "call", "system_time")
    assert ran.code == 0
    assert ran.out.startswith("20")
    assert "No checkpoint could be kept" in ran.err


def test_the_public_names_are_sorted_and_there(openfang: Cli) -> None:
    assert openfang.home
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name)
    with pytest.raises(AttributeError):
        _ = package.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_none_of_it(openfang: Cli) -> None:
    script = "import sys, openfang; print([n for n in sys.modules if n.startswith('openfang')])"
    done = subprocess.run(
        (sys.executable, "-c", script), capture_output=True, env=openfang.environment(), check=True
    )
    assert done.stdout.decode().strip() == "['openfang.version', 'openfang']"


def test_the_help_of_a_command_says_more_than_its_line_in_the_list(openfang: Cli) -> None:
    listed, alone = openfang("--help").out, openfang("start", "--help").out
    assert "Ending lets calls in flight finish" in alone
    assert "Ending lets calls in flight finish" not in listed
    call = " ".join(openfang("tools", "call", "--help").out.split())
    assert """openfang tools call file_read --args '{"path": "notes.txt"}'""" in call


def test_the_list_of_commands_has_each_of_them_in_one_chapter() -> None:
    named = [name for names in _CHAPTERS.values() for name in names]
    assert sorted(named) == sorted({*_COMMANDS, *_GROUPS})
