"""No key without a test of what it does, and no claim of a test that is not there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.config.behaviour import BEHAVIOUR

from openfang.config.schema import settings

pytestmark = pytest.mark.requirement("C2.8")

ROOT = Path(__file__).parent.parent.parent
KEYS = [setting.key for setting in settings()]
LEAVES = [key for key in KEYS if not any(k.startswith((f"{key}.", f"{key}[].")) for k in KEYS)]


def test_every_key_stands_in_the_table_and_no_other() -> None:
    assert sorted(BEHAVIOUR) == sorted(LEAVES)


@pytest.mark.parametrize(("key", "test"), BEHAVIOUR.items(), ids=BEHAVIOUR)
def test_the_table_names_a_test_that_exists(key: str, test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}, key
