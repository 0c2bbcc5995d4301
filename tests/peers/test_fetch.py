"""Runs `inside_fetch.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.host.test_http import NETWORK, SOURCES, _passed, _quiet_environment
from tests.peers import inside_fetch

pytestmark = [
    pytest.mark.requirement("C3.9", "C16.2"),
    pytest.mark.needs("bwrap", "unshare", "ip"),
]


def test_the_server_that_fetches_reaches_what_it_may_and_no_more(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    options = ["-n0", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, str(inside_fetch.__file__)]
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    prepared = f"mount --bind '{resolver}' /etc/resolv.conf && {NETWORK}"
    finished = subprocess.run(
        ["unshare", "-rnm", "sh", "-c", prepared, "sh", *command],
        cwd=Path(__file__).parents[2],
        env={**_quiet_environment(), "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    scenarios = {name for name in dir(inside_fetch) if name.startswith("test_")}
    assert _passed(report) == scenarios
