"""The examples of the docs for frameworks, each as it stands, against one daemon."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.housed import startable
from tests.faults.daemon import make_home

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.faults.daemon import Daemon

pytestmark = pytest.mark.requirement("C19.3", "C17.1")
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "frameworks"
# One process for each environment: what takes long is to import them.
ENVIRONMENTS = {
    "ours": (Path(sys.executable), ("mcp_sdk.py", "anthropic_sdk.py")),
    "theirs": (
        Path(sys.prefix) / "peers" / "frameworks" / "bin" / "python",
        ("agents_sdk.py", "langchain_mcp.py", "pydantic_ai_mcp.py"),
    ),
}
ALL = """
import runpy, sys
address, names = sys.argv[1:3], sys.argv[3:]
for name in names:
    sys.argv = [name, *address]
    runpy.run_path(name, run_name="__main__")
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, nodes_server: str) -> Generator[Daemon]:
    home = make_home(tmp_path_factory.mktemp("house") / "home")
    with startable(home, nodes_server) as start:
        yield start().daemon


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_framework_tells_the_time_by_a_tool_of_the_node(daemon: Daemon, name: str) -> None:
    python, examples = ENVIRONMENTS[name]
    address = "http://{}:{}".format(*daemon.address)
    ran = subprocess.run(
        [python, "-c", ALL, address, daemon.key, *(EXAMPLES / one for one in examples)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()
    assert len(told) == len(examples)
    assert all("T" in one and "+00:00" in one for one in told), told


def test_every_example_is_run() -> None:
    run = {one for _, examples in ENVIRONMENTS.values() for one in examples}
    assert {path.name for path in EXAMPLES.glob("*.py")} == run
