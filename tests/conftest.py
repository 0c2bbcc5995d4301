"""What every test shares: the event loop that we ship with, and a watch on blocking calls."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockBuster
from hypothesis import HealthCheck, settings
from tests.forked import forking
from tests.postgres import (
    empty_postgres,
    empty_postgres_of_module,
    postgres,
    postgres_of_module,
    postgres_server,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

__all__ = (
    "empty_postgres",
    "empty_postgres_of_module",
    "postgres",
    "postgres_of_module",
    "postgres_server",
)

# Who starts the tests in the background, or by nohup, ignores these; and so would all that is
# started here, where it is told to end by them.
for _told in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_told, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait long for a database that is locked; `tests/faults` has the true time."""
    for module in ("database", "writer"):
        monkeypatch.setattr(f"openfang.storage.{module}.BUSY_SECONDS", 0.3)


# Where the event loop may wait for the disk: small commits and look-ups, measured, and both ends.
_MAY_BLOCK = {
    "openfang/storage/writer.py": {"__post_init__", "_commit_now", "close"},
    "openfang/storage/database.py": {"_read_now", "patience"},
    "openfang/storage/postgres/driver.py": {"asyncpg", "connect"},
    "openfang/storage/processes.py": {"begin", "release", "vanished", "taken", "forget"},
    "openfang/storage/postgres/roll.py": {"vanished"},
    "openfang/app/home/new.py": {"init_home"},
    "openfang/app/home/paths.py": {"exists"},
    "openfang/app/build.py": {"build", "close"},
    "openfang/app/environment.py": {"credential"},
    "openfang/config/home.py": {"find_home"},
    "openfang/app/sinks.py": {"of", "handle_audit_event", "_only_one"},
    # What measures the tests notes each new function behind a lock of its own.
    "coverage/collector.py": {"lock_data"},
}


@pytest.fixture(autouse=True)
def _no_blocking_calls() -> Iterator[None]:
    """Fail a test in which our code blocks the event loop."""
    watch = BlockBuster("openfang")
    for function in watch.functions.values():
        for file, names in _MAY_BLOCK.items():
            function.can_block_in(file, names)
    watch.activate()
    try:
        yield
    finally:
        watch.deactivate()


@pytest.fixture(scope="session", autouse=True)
def _forking() -> Iterator[None]:
    """Have one process to fork daemons and commands from, which spares each of them its imports."""
    with forking():
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own; the user's is never touched."""
    folder = tmp_path / "home"
    monkeypatch.setenv("OPENFANG_HOME", str(folder))
    for name in ("OPENFANG_API_KEY", "OPENFANG_LISTEN", "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the machine cannot run."""
    for mark in item.iter_markers("needs"):
        missing = [program for program in mark.args if shutil.which(program) is None]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001 - the hook's signature
    call: pytest.CallInfo[None],  # noqa: ARG001 - the hook's signature
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With OPENFANG_TESTS=all, what was not run has failed."""
    report = yield
    if report.skipped and os.environ.get("OPENFANG_TESTS") == "all":
        report.outcome = "failed"
    return report


# A test of a minute that begins last has one worker at work, and the others look on.
_LONG = (
    "tests/chaos/",
    "tests/test_pages.py",
    "tests/test_tour.py",
    "tests/edges/api/test_document.py",
    "tests/sources/mcp/test_hostile_web.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.rootpath / ".hypothesis"))
    # How long an example takes says how busy the machine is.
    slow = [HealthCheck.too_slow]
    settings.register_profile("any machine", deadline=None, suppress_health_check=slow)
    settings.load_profile("any machine")
