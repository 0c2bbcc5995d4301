"""Runs `inside_namespace.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.host import inside_namespace as inside

import openfang

pytestmark = [pytest.mark.requirement("C3.9", "C6.2"), pytest.mark.needs("unshare", "ip")]

SCENARIOS = sorted(
    name for name, _ in inspect.getmembers(inside, inspect.isfunction) if name.startswith("test_")
)
NETWORK = " && ".join(
    [
        "ip link set lo up",
        *(
            f"ip address add {address} dev lo"
            for address in (
                f"{inside.PUBLIC}/32",
                f"{inside.METADATA}/32",
                f"{inside.PRIVATE}/32",
                f"{inside.PUBLIC6}/128",
            )
        ),
        'exec "$@"',
    ]
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Run the scenarios, and give for each what went wrong."""
    report = tmp_path_factory.mktemp("namespace") / "report.xml"
    pytest_options = ["-n0", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *pytest_options, str(inside.__file__)]
    finished = subprocess.run(
        ["unshare", "-rn", "sh", "-c", NETWORK, "sh", *command],
        cwd=Path(__file__).parents[2],
        env={**_quiet_environment(), "PYTHONPATH": str(Path(openfang.__path__[0]).parent)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert report.exists(), finished.stdout + finished.stderr
    return _outcomes(report)


def _quiet_environment() -> dict[str, str]:
    """Leave out what would tell the inner run that it is a worker of the outer one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def _outcomes(report: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - a report of our own
        problems = found.setdefault(str(case.get("name")).partition("[")[0], [])
        problems.extend(
            str(child.text) for child in case if child.tag in {"failure", "error", "skipped"}
        )
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_in_a_network_of_its_own(scenario: str, outcomes: dict[str, list[str]]) -> None:
    assert outcomes[scenario] == []


def test_other_modules_can_be_imported_without_the_http_library() -> None:
    script = (
        "import sys, openfang.host.files, openfang.host.process, openfang.host.secrets;"
        "assert not {'aiohttp', 'cryptography', 'keyring'} & set(sys.modules)"
    )
    environment = {"PYTHONPATH": str(Path(openfang.__path__[0]).parent)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=30)
