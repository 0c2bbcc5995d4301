"""The daemon as a service: what it tells its manager, and whether the unit files are in order."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C12.1")
PACKAGING = Path(__file__).parent.parent.parent / "packaging"
SECONDS = 30


@contextmanager
def ear(place: Path) -> Generator[socket.socket]:
    """Hear what a service manager hears."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.settimeout(SECONDS)
        made.bind(str(place))
        yield made


def heard(manager: socket.socket) -> dict[str, str]:
    """Wait for the next thing that is told, signs of life aside."""
    while True:
        words = dict(line.split("=", 1) for line in manager.recv(1_000).decode().splitlines())
        if words != {"WATCHDOG": "1"}:
            return words


def answers(address: str) -> bool:
    with closing(http.client.HTTPConnection(address, timeout=SECONDS)) as connection:
        connection.request("GET", "/api/health")
        return json.load(connection.getresponse()) == {"status": "ok"}


def test_a_service_manager_is_told_when_it_serves_reloads_and_ends(
    fresh: Cli, tmp_path: Path
) -> None:
    with ear(tmp_path / "notify") as manager:
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "60000000"}
        with serving(fresh, environ) as daemon:
            ready = heard(manager)
            address = ready["STATUS"].rpartition("/")[2]
            assert (ready["READY"], answers(address)) == ("1", True)
            daemon.send_signal(signal.SIGHUP)
            assert heard(manager)["RELOADING"] == "1"
            assert heard(manager)["READY"] == "1"
        assert heard(manager)["STOPPING"] == "1"
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            heard(manager)


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("unit", ["openfang.service", "user/openfang.service"])
def test_a_unit_file_has_no_mistake(tmp_path: Path, unit: str) -> None:
    """The program that it names is put in place of one that may not be installed here."""
    program = shutil.which("openfang", path=str(Path(sys.executable).parent))
    text = (PACKAGING / unit).read_text()
    named = re.sub(r"=\S+/bin/openfang ", f"={program} ", text)
    assert named.count(f"={program} ") == 2
    file = tmp_path / "openfang.service"
    file.write_text(named)
    for_whom = "--user" if unit.startswith("user/") else "--system"
    command = ["systemd-analyze", "verify", "--man=no", for_whom, str(file)]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


# Directives under which no child can be put into its sandbox, as was tried with each.
_FATAL = {
    *("RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProcSubset"),
    *("ProtectControlGroups", "MemoryDenyWriteExecute", "PrivateNetwork", "IPAddressDeny"),
}


@pytest.mark.parametrize("unit", ["openfang.service", "user/openfang.service"])
def test_a_unit_takes_nothing_away_that_the_sandbox_of_children_needs(unit: str) -> None:
    lines = (PACKAGING / unit).read_text().splitlines()
    said = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    assert _FATAL.isdisjoint(said)
    assert said["Delegate"] == "memory pids"
    allowed = said.get("SystemCallFilter", "@mount seccomp").split()
    assert {"@mount", "seccomp"} <= set(allowed)
