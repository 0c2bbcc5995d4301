"""Custom gates by `[plugins] gates`, in the seed's form and in ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.compat.blocks import block, demo

from openfang.core.errors import ConfigError, PolicyViolation
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C7.8")

SEEDS_FORM = """\
from openfang.compat import PolicyDecision, PolicyGate

class NoEcho(PolicyGate):
    def check(self, tool, ctx):
        if tool.name == "echo" and ctx.mode == "execution":
            return PolicyDecision(allowed=False, reason="Custom rule")
        return PolicyDecision(allowed=True)
"""
OUR_FORM = """\
from openfang.core.decisions import ALLOW, Deny

class NoEcho:
    name = "no_echo"

    def check(self, tool, call):
        return Deny("Custom rule", "no_echo", "say it aloud") if tool.name == "echo" else ALLOW
"""
UNNAMED = OUR_FORM.replace('    name = "no_echo"\n\n', "")
RAISES = """\
class Raises:
    def check(self, tool, call):
        raise LookupError(tool.id)
"""
DAWDLES = """\
import threading
from openfang.core.decisions import ALLOW

class Dawdles:
    def check(self, tool, call):
        threading.Event().wait(0.3)
        return ALLOW
"""


def configured(folder: Path, text: str, name: str) -> str:
    (folder / "gate.py").write_text(text)
    return f'[plugins]\ngates = ["python:gate.py:{name}"]\n'


async def refused(app: OpenApp, tool: str) -> PolicyViolation:
    with pytest.raises(PolicyViolation) as caught:
        await app.call(tool)
    return caught.value


@pytest.mark.parametrize(
    ("text", "name", "gate", "rule", "reason"),
    [
        (SEEDS_FORM, "NoEcho", "NoEcho", "custom_gate", "Custom rule"),
        (OUR_FORM, "NoEcho", "no_echo", "no_echo", "Custom rule"),
        (UNNAMED, "NoEcho", "NoEcho", "no_echo", "Custom rule"),
        (RAISES, "Raises", "Raises", "gate_error", "Gate Raises raised an error"),
        (DAWDLES, "Dawdles", "Dawdles", "gate_timeout", "Gate Dawdles took over 100 ms"),
    ],
    ids=["the seed's form", "our form", "without a name", "one that raises", "one that dawdles"],
)
async def test_a_gate_from_a_file_refuses(  # noqa: PLR0917 - the columns of the table
    tmp_path: Path, text: str, name: str, gate: str, rule: str, reason: str
) -> None:
    source = demo()
    config = configured(tmp_path, text, name)
    async with open_test_app(tmp_path, config=config, sources=[source]) as app:
        violation = await refused(app, "mcp:demo:echo")
        decision, refusal = await app.events()
        explained = await app.explain("mcp:demo:echo")
    assert (violation.rule, violation.message) == (rule, f"Policy violation: {reason}")
    assert source.reached == 0
    assert decision.payload["gates"][-1] == {
        "gate": gate,
        "verdict": "deny",
        "reason": reason,
        "code": rule,
    }
    assert (refusal.payload["gate"], refusal.payload["rule"]) == (gate, rule)
    assert [v.code for v in explained.verdicts if v.gate == gate] == [rule]


@pytest.mark.parametrize("text", [SEEDS_FORM, OUR_FORM], ids=["the seed's form", "our form"])
async def test_what_a_gate_lets_through_runs(tmp_path: Path, text: str) -> None:
    source = demo()
    config = configured(tmp_path, text, "NoEcho")
    async with open_test_app(tmp_path, config=config, sources=[source]) as app:
        await app.call("mcp:demo:fetch_page")
        (decision, *_) = await app.events()
    assert source.reached == 1
    assert decision.payload["gates"][-1]["verdict"] == "allow"
    assert len(decision.payload["gates"]) == 9


@pytest.mark.requirement("C7.13", "C20")
async def test_a_gate_is_not_reached_after_one_of_the_six_refused(tmp_path: Path) -> None:
    text = "from openfang.compat import *\ncustom_condition = True\n"
    text += block(10).partition("# 注册")[0]
    config = configured(tmp_path, text, "CustomGate")
    async with open_test_app(tmp_path, config=config, sources=[demo()]) as app:
        first = await refused(app, "mcp:demo:delete_file")
        second = await refused(app, "mcp:demo:echo")
    assert (first.rule, second.rule) == ("admin_token_missing", "custom_gate")
    assert [v.verdict for v in first.verdicts if v.gate == "CustomGate"] == ["not_reached"]


async def test_of_several_gates_the_first_refusal_decides(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(RAISES)
    (tmp_path / "b.py").write_text(OUR_FORM)
    config = '[plugins]\ngates = ["python:b.py:NoEcho", "python:a.py:Raises"]\n'
    async with open_test_app(tmp_path, config=config, sources=[demo()]) as app:
        violation = await refused(app, "mcp:demo:echo")
    verdicts = [(verdict.gate, verdict.verdict) for verdict in violation.verdicts[-2:]]
    assert verdicts == [("no_echo", "deny"), ("Raises", "not_reached")]


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("", "Missing", "the file has no class Missing"),
        ("import nothing_of_this_name\n", "X", "ModuleNotFoundError"),
        ("class X:\n    def __init__(self, needs): ...\n", "X", "TypeError"),
    ],
)
async def test_a_gate_that_cannot_be_made_stops_the_start(
    tmp_path: Path, text: str, name: str, why: str
) -> None:
    config = configured(tmp_path, text, name)
    with pytest.raises(ConfigError, match=why):
        async with open_test_app(tmp_path, config=config, sources=list[TableSource]()):
            pass
