"""The seed's adapter by `[plugins] adapters`: it raises, and lowers for trust high only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.compat.blocks import answer, block

from openfang.compat import MCPAdapter, RiskLevel
from openfang.core.errors import PolicyViolation
from openfang.core.ids import Kind
from openfang.core.tools import Effect, Risk, Tool, Trust
from openfang.registry.classify import Overrides
from openfang.testing import TableSource, foreign_tool, open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.15", "C20")
IMPORTS = "from openfang.compat import MCPAdapter, RiskLevel\n"
LOWERS = (
    IMPORTS
    + """\
class Lowers(MCPAdapter):
    @staticmethod
    def infer_risk_level(tool_name, description):
        return RiskLevel.LOW

    @staticmethod
    def infer_side_effects(tool_name, description):
        return []
"""
)
TAGS = (
    IMPORTS
    + """\
class Tags(MCPAdapter):
    @staticmethod
    def infer_side_effects(tool_name, description):
        return [*MCPAdapter.infer_side_effects(tool_name, description), "payments"]
"""
)


def server(*tools: Tool) -> TableSource:
    return TableSource(Kind.MCP, "demo", {tool.name: (tool, answer) for tool in tools})


def configured(folder: Path, text: str, name: str) -> str:
    (folder / "custom_adapter.py").write_text(text)
    return f'[plugins]\nadapters = ["python:custom_adapter.py:{name}"]\n'


def test_the_inferences_are_the_registrys_own() -> None:
    assert MCPAdapter.infer_risk_level("drop_table", "") is RiskLevel.CRITICAL
    assert MCPAdapter.infer_risk_level("get_created_items", "") is RiskLevel.LOW
    assert MCPAdapter.infer_side_effects("write_file", "") == ["fs.write"]
    assert MCPAdapter.infer_side_effects("echo", "") == []


async def test_the_seeds_adapter_raises_a_risk(tmp_path: Path) -> None:
    config = configured(tmp_path, IMPORTS + block(9), "CustomMCPAdapter")
    plain = foreign_tool("demo", "read_page")
    raised = foreign_tool("demo", "read_thing", "A critical_operation.")
    source = server(plain, raised)
    async with open_test_app(tmp_path, config=config, sources=[source]) as app:
        await app.call("mcp:demo:read_page")
        with pytest.raises(PolicyViolation) as caught:
            await app.call("mcp:demo:read_thing")
        seen = app.parts.registry.find("mcp:demo:read_thing")
        unchanged = app.parts.registry.find("mcp:demo:read_page")
    assert raised.risk is Risk.LOW
    assert seen is not None
    assert (seen.risk, seen.requires_admin_token) == (Risk.CRITICAL, True)
    assert seen.effects == {"unknown"}
    assert (caught.value.rule, source.reached) == ("admin_token_missing", 1)
    assert unchanged is not None
    assert (unchanged.risk, unchanged.tags, unchanged.sink) == (plain.risk, plain.tags, plain.sink)


@pytest.mark.parametrize(("trust", "risk"), [(Trust.MEDIUM, Risk.HIGH), (Trust.HIGH, Risk.LOW)])
async def test_an_adapter_lowers_for_trust_high_only(
    tmp_path: Path, trust: Trust, risk: Risk
) -> None:
    config = configured(tmp_path, LOWERS, "Lowers")
    source = server(foreign_tool("demo", "write_file", trust=trust))
    async with open_test_app(tmp_path, config=config, sources=[source]) as app:
        tool = app.parts.registry.find("mcp:demo:write_file")
    assert tool is not None
    assert (tool.risk, bool(tool.effects)) == (risk, risk is Risk.HIGH)


async def test_a_tag_that_an_adapter_adds_counts_for_the_flow_rules_too(tmp_path: Path) -> None:
    config = configured(tmp_path, TAGS, "Tags")
    async with open_test_app(
        tmp_path, config=config, sources=[server(foreign_tool("demo", "echo"))]
    ) as app:
        tool = app.parts.registry.find("mcp:demo:echo")
        builtin = app.parts.registry.find("builtin:system_time")
    assert tool is not None
    assert (tool.tags, tool.sink.effect) == ({"payments"}, Effect.MONEY)
    assert builtin is not None
    assert builtin.tags == frozenset()


@pytest.mark.requirement("C11.1")
async def test_where_an_adapter_says_nothing_of_its_own_the_operators_word_stays(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path, IMPORTS + block(9), "CustomMCPAdapter")
    stated = foreign_tool(
        "demo", "delete_file", overrides=Overrides(risk=Risk.LOW, tags=frozenset({"fs.read"}))
    )
    hinted = foreign_tool(
        "demo", "write_note", annotations={"readOnlyHint": True}, trust=Trust.HIGH
    )
    async with open_test_app(tmp_path, config=config, sources=[server(stated, hinted)]) as app:
        found = [app.parts.registry.find(tool.id) for tool in (stated, hinted)]
    assert [(t.risk, t.tags) for t in found if t] == [
        (Risk.LOW, {"fs.read"}),
        (Risk.LOW, frozenset()),
    ]
