"""The official conformance suite: what it requires of each end, and how it is run.

Each end is asked everything that its revision requires in one run, and a client also one scenario
at a time. Clients run where there is no network but the loopback: the suite's servers listen on all
addresses.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

import yaml
from tests.node import NODE

import openfang

PACKAGE: Final = Path(sys.prefix, "peers/node/node_modules/@modelcontextprotocol/conformance")
PROGRAM: Final = Path(__file__).with_name("client.py")
REVISIONS: Final = ("2025-11-25", "2026-07-28")
SECONDS: Final = 60
_RESULT: Final = re.compile(r"(?:server-)?(.+)-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9-]+Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the suite says of one scenario with a client."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the suite says of a server."""

    status: int
    checks: dict[str, list[dict[str, Any]]]
    suite: str

    def passed(self, scenarios: list[str]) -> list[str]:
        """Give the scenarios that were run, and of which every check that tells anything passed."""
        return [name for name in scenarios if self.checks.get(name) and not self._wrong(name)]

    def _wrong(self, scenario: str) -> list[dict[str, Any]]:
        checks = self.checks.get(scenario, [])
        return [check for check in checks if check["status"] not in {"SUCCESS", "INFO"}]

    def told(self, scenarios: list[str]) -> str:
        """List what did not pass, each with the suite's reason."""
        lines = [
            f"{scenario}: {check['status']} {check['id']}: {check.get('errorMessage', '')[:300]}"
            for scenario in scenarios
            for check in self._wrong(scenario)
        ]
        never = [
            f"{scenario}: was not run" for scenario in scenarios if scenario not in self.checks
        ]
        return "\n".join([f"exit code {self.status}", *lines, *never, self.suite[-2000:]])


def version() -> str:
    """Which suite this is; empty when it is not installed."""
    try:
        return json.loads((PACKAGE / "package.json").read_bytes())["version"]
    except FileNotFoundError:
        return ""


def required(revision: str, end: Literal["client", "server"] = "client") -> list[str]:
    """Give the scenarios that the suite itself says conforming to this revision takes."""
    try:
        text = (PACKAGE / "requirements" / f"{revision}.yaml").read_bytes()
    except FileNotFoundError:
        return []
    sets = cast("dict[str, list[str]]", yaml.load(text, yaml.CSafeLoader))
    return sets[end]


def run(revision: str, scenario: str, folder: Path, *, fault: str = "") -> Report:
    """Run one scenario, alone, also where it belongs to no revision or to another."""
    client = f"{sys.executable} {PROGRAM}"
    wanted = ["--scenario", scenario, "--spec-version", revision, "--force"]
    limit = ["--timeout", f"{SECONDS}000"]
    suite = [*_suite("client", folder), "--command", client, *wanted, *limit]
    done = _done([*_loopback_only(), *suite], _environment(fault))
    return Report(
        status=done.returncode,
        checks=[check for found in folder.rglob("checks.json") for check in _checks(found)],
        said=_read(folder, "stdout.txt"),
        complained=_read(folder, "stderr.txt"),
        suite=done.stderr,
    )


def run_required(revision: str, folder: Path) -> dict[str, Report]:
    """Run all that this revision requires of a client, at once, and give what is said of each."""
    address, results = folder / "socket", folder / "results"
    client = f"{sys.executable} -I -S {PROGRAM.with_name('asking.py')} {address}"
    limit = ["--timeout", f"{SECONDS}000"]
    suite = [*_suite("client", results), "--command", client, "--requirements", revision, *limit]
    forking = [sys.executable, str(PROGRAM.with_name("forking.py")), str(address)]
    done = _done([*_loopback_only(), *forking, *suite], _environment(""))
    return {
        match[1]: Report(
            status=done.returncode,
            checks=_checks(found),
            said=_read(found.parent, "stdout.txt"),
            complained=_read(found.parent, "stderr.txt"),
            suite=done.stderr,
        )
        for found in results.rglob("checks.json")
        if (match := _RESULT.fullmatch(str(found.parent.relative_to(results))))
    }


def judge(revision: str, url: str, folder: Path) -> Verdict:
    """Ask a server all that this revision requires, and what it does not."""
    done = _done([*_suite("server", folder), "--url", url, "--requirements", revision])
    found = {
        match[1]: _checks(file)
        for file in sorted(folder.rglob("checks.json"))
        if (match := _RESULT.fullmatch(file.parent.name))
    }
    return Verdict(status=done.returncode, checks=found, suite=done.stderr)


def _suite(end: str, folder: Path) -> list[str]:
    return [NODE, str(PACKAGE / "dist" / "index.js"), end, "--output-dir", str(folder)]


def _done(
    command: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS + 30,
        check=False,
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
