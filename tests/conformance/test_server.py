"""A server behind us passes every scenario that the official suite requires, as it does alone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from tests.conformance.starting import address, fixture, gateway
from tests.conformance.suite import REVISIONS, judge, required, version

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from tests.conformance.suite import Verdict

pytestmark = [
    pytest.mark.requirement("C3.10", "C4.4", "C4.6", "C17.1"),
    pytest.mark.skipif(not version(), reason="needs the suite: make conformance"),
]

# What the suite runs beside what it requires; its extensions are left out.
BEYOND = {
    "2025-11-25": ["server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"],
    "2026-07-28": [
        "json-schema-2020-12",
        "http-header-validation",
        "http-custom-header-server-validation",
    ],
}


@pytest.fixture(scope="module")
def upstream() -> Generator[str]:
    with fixture() as url:
        yield url


@pytest.fixture(scope="module")
def judged(
    upstream: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Callable[[str], Verdict]]:
    """Ask the fixture through the gateway, once for each revision."""
    with gateway(tmp_path_factory.mktemp("gateway"), upstream) as daemon:

        @cache
        def asked(revision: str) -> Verdict:
            return judge(revision, address(daemon), tmp_path_factory.mktemp(revision))

        yield asked


def assert_passed(verdict: Verdict, wanted: list[str]) -> None:
    assert verdict.passed(wanted) == wanted, verdict.told(wanted)


def test_as_much_is_required_as_the_figures_say() -> None:
    assert {revision: len(required(revision, "server")) for revision in REVISIONS} == {
        "2025-11-25": 30,
        "2026-07-28": 37,
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_fixture_alone_passes(revision: str, upstream: str, tmp_path: Path) -> None:
    verdict = judge(revision, upstream, tmp_path)
    assert verdict.status == 0, verdict.suite
    assert_passed(verdict, required(revision, "server") + BEYOND[revision])


@pytest.mark.parametrize("revision", REVISIONS)
def test_through_the_gateway_everything_passes_that_is_required(
    revision: str,
    judged: Callable[[str], Verdict],
    record_property: Callable[[str, object], None],
) -> None:
    verdict, wanted = judged(revision), required(revision, "server")
    record_property(
        "conformance",
        f"{len(verdict.passed(wanted))}/{len(wanted)} required server scenarios of "
        f"conformance@{version()} for {revision}, through the gateway",
    )
    assert_passed(verdict, wanted)
    assert verdict.status == 0, verdict.suite


@pytest.mark.parametrize("revision", REVISIONS)
def test_through_the_gateway_everything_passes_that_the_fixture_can_do(
    revision: str, judged: Callable[[str], Verdict]
) -> None:
    assert_passed(judged(revision), BEYOND[revision])
