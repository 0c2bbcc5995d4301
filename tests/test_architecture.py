"""The page that walks through the house names files and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("C19.3")

_ROOT = Path(__file__).parent.parent
_PACKAGE = _ROOT / "src" / "openfang"
_PAGE = (_ROOT / "docs" / "architecture.md").read_text()
_FILE = re.compile(r"`([a-z0-9_/]+\.py)`")
_FUNCTION = re.compile(r"`([a-z0-9_/]+\.py)`\s+`([A-Za-z_.]+)`")


def _names(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inside = (
                one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            found |= {f"{node.name}.{one.name}" for one in inside}
    return found


@pytest.mark.parametrize("file", sorted(set(_FILE.findall(_PAGE))))
def test_every_file_on_the_way_of_a_call_is_there(file: str) -> None:
    assert (_PACKAGE / file).is_file()


@pytest.mark.parametrize(("file", "name"), sorted(set(_FUNCTION.findall(_PAGE))))
def test_every_function_on_the_way_of_a_call_is_there(file: str, name: str) -> None:
    assert name in _names(_PACKAGE / file)
