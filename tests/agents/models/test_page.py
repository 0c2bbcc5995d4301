"""The page of models says what the table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openfang.agents.models.providers import LOCAL, PLANNER, PRESETS

pytestmark = pytest.mark.requirement("C6.5")
PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text("utf-8")


def test_every_provider_stands_in_the_page_with_its_keys() -> None:
    section = PAGE.partition("## Providers")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    told = {
        name: set(re.findall(r"`([A-Z_]+)`", keys))
        for names, _, keys in rows
        for name in re.findall(r"`([^`]+)`", names)
        if name != "provider"
    }
    known = {name: set(preset.keys) for name, preset in PRESETS.items()}
    assert told == known | {key: set[str]() for key in (*PLANNER, LOCAL)}
