"""A daemon at rest: it holds in memory what it needs, and nothing that only others need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from openfang.app.home.new import init_home

pytestmark = pytest.mark.requirement("C19.1")

LATER = {
    "a2a",
    "aiohttp",
    "asyncpg",
    "cyclopts",
    "dbos",
    "google.protobuf",
    "html",
    "jinja2",
    "jsonschema_rs",
    "keyring",
    "mcp",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "psycopg",
    "pydantic_ai",
    "sqlalchemy",
    "starlette",
}
OF_MANY_NODES = {
    "openfang.app.cluster",
    "openfang.app.cluster.durable",
    "openfang.app.cluster.durable.later",  # loads the rest, where there is a rest
    "openfang.app.cluster.people",
}
PROGRAM = """
import os, signal, sys
import anyio
from openfang.app.daemon.process import Wishes, run_daemon
from openfang.app.home.paths import Home
from pathlib import Path

def told(*_):
    print(*sys.modules)
    os.kill(os.getpid(), signal.SIGTERM)

wishes = Wishes(told=told, listen="127.0.0.1:0")
anyio.run(run_daemon, Home(Path(sys.argv[1])), {}, wishes, backend_options={"use_uvloop": True})
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    home = tmp_path_factory.mktemp("rest") / "home"
    init_home(home, {})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


def test_a_daemon_at_rest_has_not_loaded_what_only_some_calls_need(loaded: set[str]) -> None:
    assert "openfang.app.daemon.server" in loaded
    assert loaded & LATER == set()


def test_a_daemon_on_sqlite_has_loaded_nothing_of_several_nodes(loaded: set[str]) -> None:
    several = ("openfang.app.cluster", "openfang.storage.postgres")
    found = {name for name in loaded if name.startswith(several)}
    assert found - OF_MANY_NODES == set()
