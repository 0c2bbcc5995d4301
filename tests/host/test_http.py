"""Runs `inside_namespace.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.host import inside_namespace as inside

import openfang

pytestmark = [pytest.mark.requirement("C3.9", "C6.2"), pytest.mark.needs("unshare", "ip")]

SOURCES = str(Path(openfang.__path__[0]).parent)
SCENARIOS = {name for name in dir(inside) if name.startswith("test_")}
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


def test_the_client_keeps_its_promises_in_a_network_of_its_own(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    options = ["-n0", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, str(inside.__file__)]
    finished = subprocess.run(
        ["unshare", "-rn", "sh", "-c", NETWORK, "sh", *command],
        cwd=Path(__file__).parents[2],
        env={**_quiet_environment(), "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert _passed(report) == SCENARIOS


def _quiet_environment() -> dict[str, str]:
    """Leave out what would tell the inner run that it is a worker of the outer one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def _passed(report: Path) -> set[str]:
    """Give the scenarios of which every case ran and passed."""
    names: dict[str, bool] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - a report of our own
        name = str(case.get("name")).partition("[")[0]
        troubled = any(child.tag in {"failure", "error", "skipped"} for child in case)
        names[name] = names.get(name, True) and not troubled
    return {name for name, passed in names.items() if passed}


def test_other_modules_can_be_imported_without_the_http_library() -> None:
    script = (
        "import sys, openfang.host.files, openfang.host.process, openfang.host.secrets;"
        "assert not {'aiohttp', 'cryptography', 'keyring'} & set(sys.modules)"
    )
    environment = {"PYTHONPATH": SOURCES}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=30)
