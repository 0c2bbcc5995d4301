"""Says at the end of a run how many of the required scenarios were passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.suite import REVISIONS, required, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

REQUIRED = "::test_a_required_scenario_passes["
OUTCOMES = ("passed", "failed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in (*_clients(terminalreporter), *_servers(terminalreporter)):
        terminalreporter.write_line(line)


def _clients(reporter: pytest.TerminalReporter) -> Iterator[str]:
    """One scenario is one test."""
    for revision in REVISIONS:
        prefix = f"{REQUIRED}{revision}-"
        count = {
            outcome: sum(prefix in report.nodeid for report in reporter.getreports(outcome))
            for outcome in OUTCOMES
        }
        if any(count.values()):
            yield (
                f"{count['passed']}/{len(required(revision))} required client scenarios of "
                f"conformance@{version()} for {revision}"
            )


def _servers(reporter: pytest.TerminalReporter) -> Iterator[str]:
    """All scenarios are one test, which says how many of them passed."""
    for outcome in OUTCOMES:
        for report in reporter.getreports(outcome):
            yield from (str(text) for name, text in report.user_properties if name == "conformance")
