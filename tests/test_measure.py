"""The numbers of good code hold, and the script that counts them can count."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from tools.measure import LONG_MODULE, PRODUCT, TESTS, Module, Numbers, measure, mocks, modules

pytestmark = pytest.mark.requirement("C19.3")


def module(name: str, source: str) -> Module:
    text = dedent(source)
    return Module(Path(f"{name}.py"), name, text, ast.parse(text))


@pytest.fixture(scope="module")
def numbers() -> Numbers:
    return measure(modules(PRODUCT))


def test_functions_are_as_short_as_in_code_that_is_a_pleasure_to_read(numbers: Numbers) -> None:
    assert numbers.median <= 11
    assert numbers.p90 <= 22


def test_no_module_is_too_long_to_be_one_idea(numbers: Numbers) -> None:
    assert not numbers.long_modules, f"over {LONG_MODULE} lines"


def test_no_package_imports_itself_by_way_of_another(numbers: Numbers) -> None:
    assert not numbers.rings


def test_broad_excepts_are_rare(numbers: Numbers) -> None:
    assert len(numbers.broad) * 10 <= numbers.handlers


def test_no_test_is_made_of_mocks() -> None:
    made, tests = mocks(modules(TESTS))
    assert (made, tests > 1000) == (0, True)


def test_a_ring_is_found_over_several_packages() -> None:
    ring = [
        module("p.a", "from p.b import x"),
        module("p.b.inner", "import p.c"),
        module("p.c", "from p import a"),
    ]
    assert measure(ring).rings == [("p.a", "p.b", "p.c")]


def test_what_only_the_type_checker_imports_makes_no_ring() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a"
    assert not measure([module("p.a", "import p.b"), module("p.b", source)]).rings


def test_docstrings_are_not_counted_and_narrators_are_found() -> None:
    source = '''
        def read_task(text):
            """Read a task."""
            return text

        def other():
            """Say why.

            At length.
            """
            try:
                import json
            except Exception:
                return None
    '''
    found = measure([module("m", source), module("n", "def one(): ...")])
    assert found.functions == {"m:2 read_task": 2, "m:6 other": 5, "n:1 one": 1}
    assert found.narrating == ["m:2 read_task"]
    assert (found.broad, found.inner_imports) == (["m:13"], ["m:12"])


def test_lines_that_are_written_twice_are_found_once() -> None:
    body = "\n".join(f"    value_{number} = call({number})" for number in range(12))
    twice = [module(name, f"def {name}():\n{body}\n") for name in ("one", "two")]
    assert measure(twice).repeated == [("one:2", "two:2")]
