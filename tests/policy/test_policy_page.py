"""The page about rules: its file loads and passes its own tests, and its tables are complete."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from openfang.app.rules.cases import run_tests
from openfang.app.rules.drafts import rules_of
from openfang.config.rules import RuleEntry, TestEntry
from openfang.policy.rules.conditions import VARIABLES

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


def test_every_key_effect_and_variable_is_told_of_and_no_other() -> None:
    assert first_column("Keys of a rule") == list(RuleEntry.model_fields)
    effects = RuleEntry.model_json_schema()["properties"]["effect"]["enum"]
    assert sorted(first_column("What a rule says")) == sorted(effects)
    levels = {"LOW", "MEDIUM", "HIGH", "CRITICAL"}
    assert sorted(first_column("Conditions")) == sorted(set(VARIABLES) - levels)
    assert all(f"`{name}`" in PAGE for name in TestEntry.model_fields)
