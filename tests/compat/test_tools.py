"""The seed's registry, router and names, on a real house."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.compat.blocks import answer, demo, house

from openfang.app.admin import Admin
from openfang.compat import (
    CapabilityRegistry,
    House,
    InvocationContext,
    RiskLevel,
    ToolRouter,
    ToolSource,
    extract_mcp_server,
    format_mcp_tool_name,
    is_mcp_tool,
    use,
)
from openfang.core.calls import Caller, Grants, Mode
from openfang.core.errors import HomeError
from openfang.core.ids import Kind
from openfang.core.results import Result, error_result, text_part
from openfang.core.tools import Risk
from openfang.testing import TableSource, foreign_tool, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from openfang.core.tools import Tool

pytestmark = pytest.mark.requirement("C20")
SEED = '[policy]\nprofile = "seed"\n'
CTX = InvocationContext()


async def test_tools_are_listed_by_source_risk_and_tag_in_words_or_names(tmp_path: Path) -> None:
    async with house(tmp_path):
        registry = CapabilityRegistry()
        everything = {tool.tool_id for tool in registry.list_tools()}
        mcp = [tool.name for tool in registry.list_tools(source_types=["mcp"])]
        risky = registry.list_tools([ToolSource.MCP], [RiskLevel.HIGH, "CRITICAL"])
        writing = registry.list_tools(side_effect_tags=["fs.write"])
        nothing = registry.list_tools(risk_levels=[])
        for wrong in (["satellite"], "mcp"):
            with pytest.raises(ValueError, match="not a valid"):
                registry.list_tools(source_types=wrong)
        with pytest.raises(ValueError, match=r"fs\.burn"):
            registry.list_tools(side_effect_tags=["fs.burn"])
    assert {"mcp:demo:echo", "builtin:system_time"} <= everything
    assert mcp == ["delete_file", "echo", "fetch_page", "write_file"]
    assert [tool.tool_id for tool in risky] == ["mcp:demo:delete_file", "mcp:demo:write_file"]
    assert {tool.tool_id for tool in writing} == {"builtin:file_write", "mcp:demo:write_file"}
    assert nothing == []


async def test_a_tool_that_is_off_leaves_the_list_but_is_found(tmp_path: Path) -> None:
    source = demo()
    source.put("echo", foreign_tool("demo", "echo", enabled=False), answer)
    async with house(tmp_path, source=source):
        registry = CapabilityRegistry()
        assert "mcp:demo:echo" not in {tool.tool_id for tool in registry.list_tools()}
        by_id, by_wire_name = registry.get_tool("mcp:demo:echo"), registry.get_tool("mcp_demo_echo")
        assert registry.get_tool("mcp:demo:nothing") is None
    assert by_id is not None
    assert by_id == by_wire_name
    assert not by_id.enabled


async def test_what_a_caller_may_not_see_is_not_there(tmp_path: Path) -> None:
    async with open_test_app(tmp_path, sources=[demo()]) as app:
        guest = House(app.parts, Caller(id="key:guest", grants=Grants(tools=("mcp:demo:echo",))))
        registry = CapabilityRegistry(guest)
        assert [tool.tool_id for tool in registry.list_tools()] == ["mcp:demo:echo"]
        assert registry.get_tool("builtin:system_time") is None
        result = await ToolRouter(guest).invoke_tool("builtin:system_time", {}, CTX)
    assert (result.success, result.error) == (False, "Unknown tool: builtin:system_time")


class Unreachable(TableSource):
    """A server that has gone away."""

    gone = False

    def tools(self) -> Sequence[Tool]:
        if self.gone:
            raise ConnectionError
        return super().tools()


async def test_refreshing_counts_the_servers_that_answered(tmp_path: Path) -> None:
    lost = Unreachable(Kind.MCP, "lost", {"read": (foreign_tool("lost", "read"), answer)})
    source = demo()
    async with open_test_app(tmp_path) as app, use(app.parts, app.caller):
        registry = CapabilityRegistry()
        assert await registry.refresh_mcp_servers() == 0
        app.add(source)
        app.add(lost)
        assert await registry.refresh_mcp_servers() == 2
        lost.gone = True
        source.put("sum", foreign_tool("demo", "sum"), answer)
        assert registry.get_tool("mcp:demo:sum") is None
        assert await registry.refresh_mcp_servers() == 1
        assert registry.get_tool("mcp:demo:sum") is not None
        assert registry.get_tool("mcp:lost:read") is not None


async def test_a_call_answers_with_its_payload(tmp_path: Path) -> None:
    async def parts(_: Mapping[str, Any]) -> Result:
        return Result(content=(text_part("a"), text_part("b")))

    async def structured(_: Mapping[str, Any]) -> Result:
        return Result(content=(text_part("1"),), structured={"sum": 1})

    async def broken(_: Mapping[str, Any]) -> Result:
        return error_result("no such page")

    low = {"risk": Risk.LOW, "tags": frozenset[str]()}
    rows = {
        "text": (low, answer),
        "parts": (low, parts),
        "sum": (low, structured),
        "bad": (low, broken),
    }
    async with house(tmp_path, source=TableSource(Kind.MCP, "demo", rows)) as app:
        router = ToolRouter()
        results = {
            name: await router.invoke_tool(f"mcp:demo:{name}", {"text": name}, CTX) for name in rows
        }
        last = (await app.events())[-1]
    assert {name: (result.success, result.payload) for name, result in results.items()} == {
        "text": (True, "did text"),
        "parts": (True, [text_part("a"), text_part("b")]),
        "sum": (True, {"sum": 1}),
        "bad": (False, "no such page"),
    }
    assert results["bad"].error == "no such page"
    assert results["bad"].invocation_id == last.call_id
    assert results["text"].metadata["outcome"] == "ok"
    assert last.context["edge"] == "python"


async def test_a_refusal_or_a_failure_is_a_result_and_not_an_exception(tmp_path: Path) -> None:
    async def crash(_: Mapping[str, Any]) -> str:
        raise RuntimeError

    strict: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    source = demo()
    source.put("crash", {"risk": Risk.LOW, "tags": frozenset[str]()}, crash)
    source.put("strict", {"risk": Risk.LOW, "input_schema": strict}, answer)
    async with house(tmp_path, source=source):
        codes: dict[str, str] = {}
        for name in ("nothing", "strict", "write_file", "delete_file", "crash"):
            result = await ToolRouter().invoke_tool(f"mcp:demo:{name}", {"x": 1}, CTX)
            assert (result.success, bool(result.error)) == (False, True)
            codes[name] = result.metadata.get("rule") or result.metadata["structured"]["code"]
    assert codes == {
        "nothing": "unknown_tool",
        "strict": "schema_mismatch",
        "write_file": "spec_not_frozen",
        "delete_file": "admin_token_missing",
        "crash": "source_failed",
    }


@pytest.mark.requirement("C7.7")
async def test_a_claim_of_a_frozen_spec_is_looked_up(tmp_path: Path) -> None:
    source = demo()
    async with house(tmp_path, config=SEED, source=source) as app:
        spec = await Admin(app.parts, app.caller).freeze_spec("plan", b"write one file", "default")
        claimed = InvocationContext(spec_frozen=True, spec_hash="made-up")
        router = ToolRouter()
        refused = await router.invoke_tool("mcp:demo:write_file", {}, claimed)
        silent = await router.invoke_tool("mcp:demo:write_file", {}, replace(CTX, spec_frozen=True))
        real = InvocationContext(spec_hash=spec.hash)
        allowed = await router.invoke_tool("mcp:demo:write_file", {}, real)
    reason = "Policy violation: Execution mode requires spec_frozen=True"
    assert (refused.error, silent.error, allowed.success) == (reason, reason, True)
    assert source.reached == 1


@pytest.mark.requirement("C7.7")
async def test_a_context_cannot_exceed_what_is_bound_to_the_caller(tmp_path: Path) -> None:
    source = demo()
    async with open_test_app(tmp_path, sources=[source]) as app:
        bound = replace(app.caller, mode=Mode.PLANNING, blacklist=frozenset({"network.http"}))
        router = ToolRouter(House(app.parts, bound))
        foreign = await router.invoke_tool("mcp:demo:echo", {}, replace(CTX, project_id="theirs"))
        planning = await router.invoke_tool("mcp:demo:write_file", {}, CTX)
        asked = await router.invoke_tool("mcp:demo:write_file", {}, replace(CTX, mode="execution"))
        reading = await router.invoke_tool("mcp:demo:echo", {}, CTX)
        unknown = replace(CTX, policy_blacklist=["fs.burn"])
        nonsense = await router.invoke_tool("mcp:demo:echo", {}, unknown)
        acting = ToolRouter(House(app.parts, replace(bound, mode=Mode.EXECUTION)))
        listed = await acting.invoke_tool("mcp:demo:fetch_page", {}, CTX)
        tighter = replace(CTX, mode="planning")
        tightened = await acting.invoke_tool("mcp:demo:write_file", {}, tighter)
    assert foreign.metadata["rule"] == "context.project"
    assert nonsense.metadata["rule"] == "context.blacklist"
    assert {r.metadata["rule"] for r in (planning, asked, tightened)} == {"planning_mode"}
    assert listed.error == "Policy violation: Side effect network.http is blacklisted"
    assert (reading.success, source.reached) == (True, 1)


@pytest.mark.requirement("C10.1")
async def test_a_session_is_a_run(tmp_path: Path) -> None:
    async with house(tmp_path) as app:
        ctx = InvocationContext(session_id="s1", task_id="t1")
        await ToolRouter().invoke_tool("mcp:demo:echo", {}, ctx)
        (*_, last) = await app.events()
    assert (last.context["run"], last.task_id) == ("s1", "t1")


@pytest.mark.requirement("C1.4")
async def test_names_are_formed_purely_and_read_from_the_table(tmp_path: Path) -> None:
    first = TableSource(Kind.MCP, "a", {"b_c": (foreign_tool("a", "b_c"), answer)})
    second = TableSource(Kind.MCP, "a_b", {"c": (foreign_tool("a_b", "c"), answer)})
    async with open_test_app(tmp_path, sources=[first, second]) as app:
        async with use(app.parts, app.caller):
            wire = {tool.id: tool.wire_name for tool in app.parts.registry.snapshot.tools.values()}
            servers = [extract_mcp_server(wire[id_]) for id_ in ("mcp:a:b_c", "mcp:a_b:c")]
            assert extract_mcp_server("file_read") is None
            assert extract_mcp_server("mcp_nobody_knows") is None
        assert extract_mcp_server(wire["mcp:a:b_c"], House(app.parts, app.caller)) == "a"
    assert format_mcp_tool_name("a", "b_c") == format_mcp_tool_name("a_b", "c") == "mcp_a_b_c"
    assert format_mcp_tool_name("Git-Hub", "List Repos") == "mcp_git_hub_list_repos"
    assert servers == ["a", "a_b"]
    assert is_mcp_tool("mcp_a_b_c")
    assert not is_mcp_tool("file_read")


async def test_without_a_house_there_is_nothing_to_work_on(tmp_path: Path) -> None:
    registry = CapabilityRegistry()
    with pytest.raises(HomeError) as caught:
        registry.list_tools()
    assert "use(parts, caller)" in caught.value.way_out
    async with house(tmp_path):
        assert registry.list_tools()
    with pytest.raises(HomeError):
        await ToolRouter().invoke_tool("mcp:demo:echo", {}, CTX)


async def test_of_two_houses_the_inner_one_is_in_use(tmp_path: Path) -> None:
    registry = CapabilityRegistry()
    async with house(tmp_path / "outer"):
        async with house(tmp_path / "inner", source=TableSource(Kind.MCP, "other", {})):
            assert registry.get_tool("mcp:demo:echo") is None
        assert registry.get_tool("mcp:demo:echo") is not None


async def test_an_error_inside_a_house_comes_out_as_itself(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        with pytest.raises(LookupError):
            async with use(app.parts, app.caller):
                raise LookupError
