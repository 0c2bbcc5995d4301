from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.requirements import BY_ID, REQUIREMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator


# Tests of the repository itself, not of what the software does.
ABOUT_THE_HOUSE = {"tests/test_requirements.py", "tests/test_docs.py"}


def shown(items: list[pytest.Item]) -> Iterator[tuple[str, str]]:
    for item in items:
        for mark in item.iter_markers("requirement"):
            for requirement in mark.args:
                yield str(requirement), item.nodeid


def whole_suite(request: pytest.FixtureRequest) -> bool:
    config = request.config
    return config.args in ([], ["tests"]) and not config.getoption("keyword")


def test_every_test_names_requirements_that_exist(request: pytest.FixtureRequest) -> None:
    unknown = {pair for pair in shown(request.session.items) if pair[0] not in BY_ID}
    assert not unknown


def test_every_test_names_a_requirement(request: pytest.FixtureRequest) -> None:
    marked = {nodeid for _, nodeid in shown(request.session.items)}
    silent = [item.nodeid for item in request.session.items if item.nodeid not in marked]
    assert not [test for test in silent if test.partition("::")[0] not in ABOUT_THE_HOUSE]


def test_every_requirement_that_is_not_open_has_a_test(request: pytest.FixtureRequest) -> None:
    if not whole_suite(request):
        pytest.skip("only the whole suite shows every requirement")
    named = {requirement for requirement, _ in shown(request.session.items)}
    missing = [line.id for line in REQUIREMENTS if not line.open and line.id not in named]
    assert not missing


def test_no_requirement_is_listed_twice() -> None:
    assert len(BY_ID) == len(REQUIREMENTS)
