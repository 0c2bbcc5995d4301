"""The page about rules: its file loads and passes its own tests, and its tables are complete."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from openfang.app.rules.cases import run_tests
from openfang.app.rules.drafts import rules_of
from openfang.config.rules import RuleEntry
from openfang.core.tools import Risk
from openfang.policy.rules.conditions import VARIABLES, compiled
from openfang.policy.rules.language import FUNCTIONS, VARIABLES_IN_WORDS

pytestmark = pytest.mark.requirement("C19.3", "C7.8")

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text("utf-8")


def first_column(heading: str) -> list[str]:
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def test_the_example_loads_and_passes_its_own_tests(tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        (tmp_path / "policy.toml").write_text(block)
        rules = rules_of(str(tmp_path / "policy.toml"), {"HOME": str(tmp_path)})
        tried = run_tests(rules, {}, time.time_ns())
        assert tried
        assert [one.as_json() for one in tried if not one.passed] == []


def test_every_effect_and_variable_is_told_of_and_no_other() -> None:
    effects = RuleEntry.model_json_schema()["properties"]["effect"]["enum"]
    assert sorted(first_column("What a rule says")) == sorted(effects)
    assert set(VARIABLES_IN_WORDS) == set(VARIABLES) - {risk.name for risk in Risk}


@pytest.mark.parametrize("example", [one.example for one in FUNCTIONS.values()])
def test_every_function_that_is_told_of_is_there(example: str) -> None:
    assert compiled(example)
