"""Our client passes every scenario that the official suite requires of one, in both eras."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from tests.conformance.suite import REVISIONS, Report, required, run, run_required, version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.requirement("C3.3"),
    pytest.mark.needs("unshare", "ip"),
    pytest.mark.skipif(not version(), reason="needs the suite: make conformance"),
]

REQUIRED = [(revision, scenario) for revision in REVISIONS for scenario in required(revision)]
BEYOND = [
    ("2025-11-25", "json-schema-2020-12-preservation"),
    ("2026-07-28", "json-schema-2020-12-preservation"),
    ("2025-11-25", "auth/2025-03-26-oauth-metadata-backcompat"),
    ("2025-11-25", "auth/2025-03-26-oauth-endpoint-fallback"),
    ("2026-07-28", "auth/client-credentials-basic"),
    ("2026-07-28", "auth/client-credentials-jwt"),
]
# Where the client has to give up, and why it says that it does.
GIVEN_UP = {
    "auth/resource-mismatch": "does not match",
    "auth/iss-supported-missing": "missing iss",
    "auth/iss-wrong-issuer": "iss mismatch",
    "auth/iss-unexpected": "iss mismatch",
    "auth/iss-normalized": "iss mismatch",
    "auth/metadata-issuer-mismatch": "issuer mismatch",
    "auth/scope-retry-limit": "wants other credentials",
}


def test_the_suite_is_the_one_that_the_figures_speak_of() -> None:
    assert version() == "0.2.0-alpha.12"
    assert {revision: len(required(revision)) for revision in REVISIONS} == {
        "2025-11-25": 18,
        "2026-07-28": 32,
    }


@pytest.fixture(scope="module")
def required_runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], dict[str, Report]]:
    """Run all that is required, once for each revision."""

    @cache
    def ran(revision: str) -> dict[str, Report]:
        return run_required(revision, tmp_path_factory.mktemp(revision))

    return ran


def assert_passed(report: Report, scenario: str) -> None:
    assert report.status == 0, report
    assert not report.ids("FAILURE") + report.ids("WARNING"), report
    assert report.ids("SUCCESS"), report
    assert report.finished == (scenario not in GIVEN_UP), report
    assert GIVEN_UP.get(scenario, "") in report.complained, report


@pytest.mark.parametrize(("revision", "scenario"), REQUIRED)
def test_a_required_scenario_passes(
    revision: str, scenario: str, required_runs: Callable[[str], dict[str, Report]]
) -> None:
    assert_passed(required_runs(revision)[scenario], scenario)


@pytest.mark.parametrize(("revision", "scenario"), BEYOND)
def test_a_scenario_that_nobody_requires_passes(
    revision: str, scenario: str, tmp_path: Path
) -> None:
    assert_passed(run(revision, scenario, tmp_path), scenario)


@pytest.mark.parametrize(
    ("revision", "scenario", "fault", "check"),
    [
        ("2025-11-25", "elicitation-sep1034-client-defaults", "careless", "client-elicitation-"),
        ("2026-07-28", "http-custom-headers", "unmirrored", "sep-2243-client-supports-"),
        ("2026-07-28", "http-invalid-tool-headers", "credulous", "sep-2243-x-mcp-header-"),
        ("2026-07-28", "tools_call", "unsaid", "tool-add-numbers"),
        ("2026-07-28", "auth/basic-cimd", "unsigned", "cimd-client-id-used"),
    ],
)
def test_a_client_that_does_wrong_fails(
    revision: str, scenario: str, fault: str, check: str, tmp_path: Path
) -> None:
    report = run(revision, scenario, tmp_path, fault=fault)
    assert report.status != 0
    assert any(found.startswith(check) for found in report.ids("FAILURE")), report


def test_a_client_that_ends_with_an_error_fails(tmp_path: Path) -> None:
    report = run("2026-07-28", "request-metadata", tmp_path, fault="crashing")
    assert report.status != 0
    assert not report.ids("FAILURE")
    assert "the client fails" in report.complained
