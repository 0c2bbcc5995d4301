"""The official conformance suite: what it requires of a client, and how one scenario of it is run.

It runs where there is no network but the loopback. Its servers listen on all addresses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import yaml
from tests.node import NODE

import openfang

PACKAGE: Final = Path(sys.prefix, "peers/node/node_modules/@modelcontextprotocol/conformance")
PROGRAM: Final = Path(__file__).with_name("client.py")
REVISIONS: Final = ("2025-11-25", "2026-07-28")
SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the suite says of one run."""

    status: int
    checks: list[dict[str, Any]]
    said: str
    complained: str
    suite: str

    @property
    def finished(self) -> bool:
        """Whether the client came to its end."""
        return self.said.endswith("done\n")

    def ids(self, status: str) -> list[str]:
        return [check["id"] for check in self.checks if check["status"] == status]

    def __str__(self) -> str:
        wrong = [check for check in self.checks if check["status"] in {"FAILURE", "WARNING"}]
        lines = [
            f"{check['status']} {check['id']}: {check.get('errorMessage') or check['description']}"
            for check in wrong
        ]
        said = [text[-4000:] for text in (self.said, self.complained, self.suite)]
        return "\n".join([f"exit code {self.status}", *lines, *said])


def version() -> str:
    """Which suite this is; empty when it is not installed."""
    try:
        return json.loads((PACKAGE / "package.json").read_bytes())["version"]
    except FileNotFoundError:
        return ""


def required(revision: str) -> list[str]:
    """Give the client scenarios that the suite itself says conforming to this revision takes."""
    try:
        text = (PACKAGE / "requirements" / f"{revision}.yaml").read_bytes()
    except FileNotFoundError:
        return []
    sets = cast("dict[str, list[str]]", yaml.load(text, yaml.CSafeLoader))
    return sets["client"]


def run(revision: str, scenario: str, folder: Path, *, fault: str = "") -> Report:
    """Run one scenario, alone, also where it belongs to no revision or to another."""
    client = f"{sys.executable} {PROGRAM}"
    wanted = ["--scenario", scenario, "--spec-version", revision, "--force"]
    limit = ["--timeout", f"{SECONDS}000"]
    program = [NODE, str(PACKAGE / "dist" / "index.js")]
    suite = [*program, "client", "--command", client, *wanted, *limit]
    done = subprocess.run(
        [*_loopback_only(), *suite, "--output-dir", str(folder)],
        env=_environment(fault),
        capture_output=True,
        text=True,
        timeout=SECONDS + 30,
        check=False,
    )
    return Report(
        status=done.returncode,
        checks=[check for found in folder.rglob("checks.json") for check in _checks(found)],
        said=_read(folder, "stdout.txt"),
        complained=_read(folder, "stderr.txt"),
        suite=done.stderr,
    )


def _loopback_only() -> list[str]:
    return ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def _environment(fault: str) -> dict[str, str]:
    """Leave out what would lead elsewhere; the client is given all of the suite's."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    code = [Path(openfang.__path__[0]).parent, Path(__file__).parents[2]]
    return {**kept, "PYTHONPATH": ":".join(map(str, code)), "CONFORMANCE_FAULT": fault}


def _checks(found: Path) -> list[dict[str, Any]]:
    return json.loads(found.read_bytes())


def _read(folder: Path, name: str) -> str:
    return "".join(file.read_text(errors="replace") for file in folder.rglob(name))
