"""The real command, as a child process, on a home of the tests' own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from openfang.app.home import init_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the command printed
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
        done = subprocess.run(
            self.command(*arguments),
            input=stdin.encode(),
            capture_output=True,
            env=self.environment(env),
            timeout=_SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(),
        )

    @staticmethod
    def command(*arguments: str) -> tuple[str, ...]:
        return (sys.executable, "-m", "openfang", *arguments)

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
    ) -> Ran:  # noqa: ANN401 - any JSON
        return self(
            "tools", "call", tool, "--json", "--args", json.dumps(arguments), *options, env=env
        )

    def batch(self, calls: Iterable[Mapping[str, Any]], *options: str) -> Ran:
        lines = "\n".join(json.dumps(call) for call in calls)
        return self("tools", "batch", "-", *options, stdin=lines)

    def sql(self, query: str) -> Any:  # noqa: ANN401 - rows of any kind
        return self("audit", "sql", query, "--json").json

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


@pytest.fixture(scope="module")
def openfang(make_home: Callable[[], Cli]) -> Cli:
    """The command on a home that the tests of a module share."""
    return make_home()


@pytest.fixture
def fresh(make_home: Callable[[], Cli]) -> Cli:
    """The command on a home of the test's own."""
    return make_home()
