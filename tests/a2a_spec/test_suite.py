"""Every requirement has a test or a reason, and tests show only what is listed."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C5.3")

HERE = Path(__file__).parent
LIST: dict[str, Any] = tomllib.loads((HERE / "requirements.toml").read_text())
REASONS: dict[str, str] = LIST.pop("reasons")
EXCLUDED: dict[str, str] = LIST.pop("excluded")
ENTRIES = {f"{section}-{n}": entry for section, lines in LIST.items() for n, entry in lines.items()}
_NUMBER = re.compile(r"(MUST|SHOULD|ERROR)-([1-9][0-9]*)")


def shown() -> Iterator[str]:
    """The requirements that tests say they show."""
    for file in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="a2a"), args=arguments):
                    yield from (ast.literal_eval(argument) for argument in arguments)
                case _:
                    pass


def test_every_requirement_has_a_test_or_a_reason() -> None:
    found = set(shown())
    silent = {name for name, entry in ENTRIES.items() if isinstance(entry, str)} - found
    assert not silent
    assert {entry["why"] for entry in ENTRIES.values() if isinstance(entry, dict)} <= set(REASONS)


def test_no_test_shows_what_is_not_listed_or_is_said_to_be_left_out() -> None:
    left_out = {name for name, entry in ENTRIES.items() if not isinstance(entry, str)}
    assert not set(shown()) - (set(ENTRIES) - left_out)


def test_the_numbers_of_each_section_have_no_gap() -> None:
    for section, lines in LIST.items():
        numbers: dict[str, list[int]] = {}
        for name in lines:
            found = _NUMBER.fullmatch(name)
            assert found, (section, name)
            numbers.setdefault(found[1], []).append(int(found[2]))
        assert all(each == list(range(1, len(each) + 1)) for each in numbers.values()), section


def test_the_readme_gives_every_reason() -> None:
    said = (HERE / "README.md").read_text()
    assert not [reason for reason in (*REASONS.values(), *EXCLUDED.values()) if reason not in said]
