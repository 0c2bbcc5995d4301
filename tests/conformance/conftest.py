"""Says at the end of a run how many of the required scenarios were passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.suite import REVISIONS, required, version

if TYPE_CHECKING:
    import pytest

REQUIRED = "::test_a_required_scenario_passes["


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for revision in REVISIONS:
        prefix = f"{REQUIRED}{revision}-"
        count = {
            outcome: sum(prefix in report.nodeid for report in terminalreporter.getreports(outcome))
            for outcome in ("passed", "failed")
        }
        if any(count.values()):
            terminalreporter.write_line(
                f"{count['passed']}/{len(required(revision))} required client scenarios of "
                f"conformance@{version()} for {revision}"
            )
