"""The steps that a call's time is divided among are places that are there, and on the page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.steps import LOOP, STEPS, shares, step_of

pytestmark = pytest.mark.requirement("C19.3")

_ROOT = Path(__file__).parent.parent
_PACKAGE = _ROOT / "src" / "openfang"
_PAGE = (_ROOT / "docs" / "performance.md").read_text()


@pytest.mark.parametrize("home", sorted({home for homes in STEPS.values() for home in homes}))
def test_every_home_of_a_step_is_there(home: str) -> None:
    file, _, function = home.partition(":")
    assert (_PACKAGE / file).exists() or find_spec(file)
    assert not function or f"def {function}(" in (_PACKAGE / file).read_text()


def test_a_sample_is_the_cost_of_the_innermost_step() -> None:
    path = "host/exchange.py:run_asgi edges/api/app.py:_serve pipeline/invoke.py:"
    assert step_of(f"{path}_admit policy/engine.py:decide core/calls.py:new") == "gates, flow"
    assert step_of(f"{path}_finish safety/redact.py:text") == "records made, redacted"
    assert step_of(f"{path}_run") == "the path itself"
    assert step_of("cli/start.py:_serve uvloop/__init__.py:run") == LOOP


def test_the_shares_of_all_steps_are_the_whole() -> None:
    found = shares("3 storage/writer.py:_flush\n1 cli/start.py:_serve\n")
    assert (found["records chained, committed"], found[LOOP]) == (0.75, 0.25)
    assert sum(found.values()) == 1


@pytest.mark.parametrize("step", [*STEPS, LOOP])
def test_the_page_has_every_step(step: str) -> None:
    assert f"| {step} | " in _PAGE
