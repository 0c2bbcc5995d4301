"""The real command, as a child process, on a home of the tests' own.

Most commands are forked from a process that has everything imported (`forked.py`); `whole` starts a
new interpreter, as a person's shell does. The modules in `_BOTH_WAYS` are run twice: in process,
and over a daemon that serves the home.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.forked import SECONDS, Piped, command, run, started, whole

from openfang.app.home.new import init_home

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from tests.forked import Process

_WAYS = ("in-process", "daemon")
_BOTH_WAYS = frozenset(
    {"test_approvals", "test_audit", "test_keys", "test_policy", "test_refusals", "test_tools"}
)
_IMPORTED = """
import sys
sys.argv = {argv!r}
try:
    from openfang.__main__ import main
    main()
finally:
    print(" ".join(sys.modules), file=sys.stderr)
"""
_NO_LIMITS = "[limits]\ncells_per_minute = 100_000_000\nburst = 100_000_000"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.definition.path.stem
    if "openfang" in metafunc.fixturenames and module in _BOTH_WAYS:
        metafunc.parametrize("openfang", _WAYS, indirect=True, scope="module")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True, slots=True)
class Cli:
    """Runs `openfang` on one home. Calling it runs one command to its end."""

    home: Path
    pycache: Path

    def __call__(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> Ran:
        done = run(arguments, self.environment(env), stdin.encode())
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def whole(self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        done = whole(arguments, self.environment(env), stdin.encode())
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str) -> Piped:
        return Piped(arguments, self.environment())

    def imported(self, *arguments: str) -> set[str]:
        """Run a command, and return what it imported."""
        script = _IMPORTED.format(argv=["openfang", *arguments])
        done = subprocess.run(
            (sys.executable, "-c", script), capture_output=True, env=self.environment(), check=True
        )
        return set(done.stderr.decode().splitlines()[-1].split())

    @staticmethod
    def command(*arguments: str) -> list[str]:
        return command(*arguments)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home.parent),
            "LANG": "C.UTF-8",
            "OPENFANG_HOME": str(self.home),
            "PYTHONPYCACHEPREFIX": str(self.pycache),
            **(more or {}),
        }

    def call(
        self, tool: str, /, *options: str, env: Mapping[str, str] | None = None, **arguments: Any
    ) -> Ran:
        return self(
            "tools", "call", tool, "--json", "--args", json.dumps(arguments), *options, env=env
        )

    def batch(self, calls: Iterable[Mapping[str, Any]], *options: str) -> Ran:
        lines = "\n".join(json.dumps(call) for call in calls)
        return self("tools", "batch", "-", *options, stdin=lines)

    def sql(self, query: str) -> Any:
        return self("audit", "sql", query, "--json").json

    def stored(self, query: str) -> list[Any]:
        """Ask the database itself."""
        with closing(sqlite3.connect(self.home / "openfang.db")) as database:
            return database.execute(query).fetchall()

    def configure(self, text: str) -> None:
        """Add to the configuration."""
        with (self.home / "config.toml").open("a") as file:
            file.write(f"\n{text}\n")


@pytest.fixture(scope="session")
def make_home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Cli]:
    """Make as many homes as a test wants."""
    pycache = tmp_path_factory.getbasetemp().parent / "pycache"

    def make() -> Cli:
        home = tmp_path_factory.mktemp("cli") / "home"
        init_home(home, {"HOME": str(home.parent)})
        return Cli(home, pycache)

    return make


@contextmanager
def serving(cli: Cli, env: Mapping[str, str] | None = None) -> Generator[Process]:
    """Have a daemon serve the home of these commands."""
    start, environment = ("start", "--listen", "127.0.0.1:0"), cli.environment(env)
    with (
        Path(os.devnull).open("wb") as log,
        started(start, environment, log.fileno(), Path.cwd()) as (running, said),
    ):
        assert b"serves" in said.readline()
        yield running
        running.terminate()
        running.wait(SECONDS)


@pytest.fixture(scope="module")
def openfang(request: pytest.FixtureRequest, make_home: Callable[[], Cli]) -> Iterator[Cli]:
    """The command on a home that the tests of a module share."""
    cli = make_home()
    if getattr(request, "param", "") != "daemon":
        yield cli
        return
    cli.configure(_NO_LIMITS)
    with serving(cli):
        yield cli


@pytest.fixture
def fresh(make_home: Callable[[], Cli]) -> Cli:
    """The command on a home of the test's own."""
    return make_home()
