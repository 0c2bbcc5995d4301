"""Runs scenarios in a network of their own, so that a bug could not send a packet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC, PUBLIC6

import openfang

if TYPE_CHECKING:
    from types import ModuleType

SOURCES = str(Path(openfang.__path__[0]).parent)
_ROOT = Path(__file__).parents[2]
_NETWORK = " && ".join(
    [
        "ip link set lo up",
        *(
            f"ip address add {address} dev lo"
            for address in (f"{PUBLIC}/32", f"{METADATA}/32", f"{PRIVATE}/32", f"{PUBLIC6}/128")
        ),
        'exec "$@"',
    ]
)


def check_alone(
    scenarios: ModuleType, folder: Path, *, first: str = ":", **environment: str
) -> None:
    """Run every test of a module there, after a command of the shell; all must run and pass."""
    report = folder / "report.xml"
    # Its own place: in the shared one it would clean up after the runs of others, while they do.
    # And a short one, for sockets lie there.
    with TemporaryDirectory() as place:
        options = ["-n0", "-p", "no:cacheprovider", f"--junitxml={report}", f"--basetemp={place}/i"]
        command = [sys.executable, "-m", "pytest", *options, str(scenarios.__file__)]
        finished = subprocess.run(
            ["unshare", "-rnm", "sh", "-c", f"{first} && {_NETWORK}", "sh", *command],
            cwd=_ROOT,
            env={**_quiet_environment(), "PYTHONPATH": SOURCES, **environment},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert _passed(report) == {name for name in dir(scenarios) if name.startswith("test_")}


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
