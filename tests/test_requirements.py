from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.requirements import BY_ID, REQUIREMENTS, through_an_edge

if TYPE_CHECKING:
    from collections.abc import Iterator


# Tests of the repository itself, not of what the software does.
ABOUT_THE_HOUSE = {f"tests/test_{name}.py" for name in ("docs", "mutations", "requirements")}


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


def test_every_requirement_that_is_due_has_a_test_through_an_edge(
    request: pytest.FixtureRequest,
) -> None:
    if not whole_suite(request):
        pytest.skip("only the whole suite shows every requirement")
    pairs = shown(request.session.items)
    named = {requirement for requirement, test in pairs if through_an_edge(test)}
    assert not [line.id for line in REQUIREMENTS if not line.later and line.id not in named]


def test_what_is_to_come_later_says_what_is_missing() -> None:
    assert not [line.id for line in REQUIREMENTS if line.later and not line.open]


@pytest.mark.parametrize(
    ("test", "through"),
    [
        ("tests/cli/test_tools.py::test_a[daemon]", True),
        ("tests/contract/test_names.py::test_a", True),
        ("tests/edges/api/test_calls.py::test_a", True),
        ("tests/edges/mcp/test_refusals.py::test_a", False),
        ("tests/guard/test_loops.py::test_a", False),
    ],
)
def test_a_test_of_a_part_is_none_through_an_edge(test: str, *, through: bool) -> None:
    assert through_an_edge(test) is through


def test_no_requirement_is_listed_twice() -> None:
    assert len(BY_ID) == len(REQUIREMENTS)
