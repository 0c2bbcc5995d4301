"""Every Python block of the seed that these names cover runs as it is written there."""

from __future__ import annotations

import ast
import inspect
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compat.blocks import block, demo, house, outline, run

from openfang import compat
from openfang.compat import (
    CapabilityRegistry,
    InvocationContext,
    MCPAdapter,
    MCPClient,
    PolicyDecision,
    RiskLevel,
    ToolDescriptor,
    ToolPolicyEngine,
    ToolResult,
    ToolRouter,
)
from openfang.core.tools import EFFECT_TAGS, READ_TAGS

pytestmark = pytest.mark.requirement("C20")


def test_a_name_is_offered_with_its_work_or_not_at_all() -> None:
    with pytest.raises(AttributeError, match="A2aServer"):
        getattr(compat, "A2aServer")  # noqa: B009 - a checker would see that it is not there
    assert {name for name in dir(MCPAdapter) if not name.startswith("_")} == {
        "adapt",
        "infer_risk_level",
        "infer_side_effects",
        "mcp_result_to_tool_result",
        "mcp_tool_to_descriptor",
    }


def test_no_block_of_the_seed_is_left_out() -> None:
    here = Path(__file__).parent
    texts = "".join(file.read_text() for file in here.glob("test_*.py"))
    run_somewhere = {int(number) for number in re.findall(r"\bblock\((\d+)\)", texts)}
    cut_out = {int(file.name[4:6]) for file in (here.parent / "data/seeds").glob("003-*.py.txt")}
    assert run_somewhere | {4} == cut_out  # the fourth is run by its number in a table


def test_every_offered_name_is_there() -> None:
    for name in compat.__all__:
        assert getattr(compat, name) is not None


def test_the_keyword_rows_have_the_seeds_risks() -> None:
    rows = run(block(2))
    for level in ("CRITICAL", "HIGH", "MEDIUM", "LOW"):
        for word in rows[f"{level}_KEYWORDS"]:
            assert MCPAdapter.infer_risk_level(word, "") is RiskLevel[level], word


def test_the_side_effect_rows_have_the_seeds_tags() -> None:
    rows = run(block(3).replace("    ...\n", ""))["SIDE_EFFECT_MAPPING"]
    assert len(rows) == 5
    for word, tags in rows.items():
        assert set(tags) <= set(MCPAdapter.infer_side_effects(word, "")), word


@pytest.mark.parametrize(
    ("number", "kind", "count"), [(1, MCPClient, 5), (4, CapabilityRegistry, 3)]
)
def test_a_class_has_the_seeds_signatures(number: int, kind: type, count: int) -> None:
    methods = outline(block(number)).body
    assert len(methods) == count
    for method in methods:
        assert isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        ours = getattr(kind, method.name)
        assert inspect.iscoroutinefunction(ours) is isinstance(method, ast.AsyncFunctionDef)
        parameters = inspect.signature(ours).parameters.values()
        assert [p.name for p in parameters] == [argument.arg for argument in method.args.args]
        defaults = [p.default for p in parameters if p.default is not p.empty]
        assert defaults == [ast.literal_eval(default) for default in method.args.defaults]


def test_the_router_has_the_seeds_signature() -> None:
    theirs = inspect.signature(run(block(5))["invoke_tool"]).parameters
    ours = inspect.signature(ToolRouter().invoke_tool).parameters
    assert list(ours) == list(theirs)


async def test_the_seeds_router_refuses_what_ours_refuses(tmp_path: Path) -> None:
    source = demo()
    async with house(tmp_path, config='[policy]\nprofile = "seed"\n', source=source):
        registry, engine = CapabilityRegistry(), ToolPolicyEngine()
        theirs = run(block(5), registry=registry, policy_engine=engine)["invoke_tool"]
        ctx = InvocationContext(project_id="default")
        called = ("mcp:demo:write_file", {"text": "x"}, ctx)
        said, ours = await theirs(*called), await ToolRouter().invoke_tool(*called)
    assert said == ToolResult(error="Execution mode requires spec_frozen=True")
    assert (ours.success, ours.error) == (False, f"Policy violation: {said.error}")
    assert source.reached == 0


TOOLS = st.builds(
    ToolDescriptor,
    tool_id=st.just("mcp:s:t"),
    name=st.just("t"),
    risk_level=st.sampled_from(RiskLevel),
    side_effect_tags=st.lists(st.sampled_from(sorted(EFFECT_TAGS)), max_size=2, unique=True),
    requires_admin_token=st.booleans(),
    enabled=st.sampled_from([True, True, True, False]),
)
CONTEXTS = st.builds(
    InvocationContext,
    mode=st.sampled_from(["planning", "execution"]),
    spec_frozen=st.booleans(),
    spec_hash=st.sampled_from([None, "", "abc"]),
    project_id=st.sampled_from([None, "", "p"]),
    policy_blacklist=st.lists(st.sampled_from(sorted(EFFECT_TAGS)), max_size=3),
    admin_token=st.sampled_from([None, "", "token"]),
)
# In the seed the tag is out of scope where its message is made: the block is given a word for it.
SEEDS_ENGINE = run(block(6), tag="{tag}")["ToolPolicyEngine"]()


@pytest.mark.requirement("C7.6")
@given(TOOLS, CONTEXTS)
@settings(max_examples=300)
def test_the_policy_engine_decides_as_the_seeds_own_code(
    tool: ToolDescriptor, ctx: InvocationContext
) -> None:
    theirs, ours = SEEDS_ENGINE.check(tool, ctx), ToolPolicyEngine().check(tool, ctx)
    barred = sorted(set(tool.side_effect_tags) & set(ctx.policy_blacklist))
    reason = theirs.reason and theirs.reason.replace("{tag}", barred[0] if barred else "")
    assert ours == PolicyDecision(theirs.allowed, reason)


@pytest.mark.requirement("C11.2")
def test_the_one_difference_is_that_reading_is_no_side_effect() -> None:
    tool = ToolDescriptor(tool_id="mcp:s:t", name="t", side_effect_tags=sorted(READ_TAGS))
    ctx = InvocationContext(mode="planning", project_id="p")
    assert not SEEDS_ENGINE.check(tool, ctx).allowed
    assert ToolPolicyEngine().check(tool, ctx).allowed


async def test_the_seeds_adapter_judges_by_its_own_rule_and_falls_back_to_ours() -> None:
    infer = run(block(9))["CustomMCPAdapter"].infer_risk_level
    assert infer("read_thing", "a critical_operation") is RiskLevel.CRITICAL
    assert infer("write_file", "") is RiskLevel.HIGH


@pytest.mark.requirement("C7.8")
@pytest.mark.parametrize("condition", [True, False])
async def test_the_seeds_gate_is_registered_and_asked(tmp_path: Path, *, condition: bool) -> None:
    source = demo()
    async with house(tmp_path, source=source):
        engine = ToolPolicyEngine()
        run(block(10), policy_engine=engine, custom_condition=condition)
        result = await ToolRouter().invoke_tool("mcp:demo:echo", {}, InvocationContext())
        echo = CapabilityRegistry().get_tool("mcp:demo:echo")
        assert echo is not None
        decision = engine.check(echo, InvocationContext())
    assert result.success is decision.allowed is not condition
    assert source.reached == (0 if condition else 1)
    if condition:
        assert (result.error, decision.reason) == ("Policy violation: Custom rule", "Custom rule")


@dataclass
class External:
    """The system that the seed's handler sends to."""

    expected: int
    got: list[compat.AuditEvent] = field(default_factory=list[compat.AuditEvent])
    complete: anyio.Event = field(default_factory=anyio.Event)

    async def send(self, event: compat.AuditEvent) -> None:
        self.got.append(event)
        if len(self.got) == self.expected:
            self.complete.set()


@pytest.mark.requirement("C7.15")
async def test_the_seeds_audit_handler_is_registered_and_fed(tmp_path: Path) -> None:
    external = External(expected=4)
    run(block(11), send_to_external_system=external.send)
    async with house(tmp_path) as app:
        await ToolRouter().invoke_tool("mcp:demo:echo", {}, InvocationContext())
        with anyio.fail_after(30):
            await external.complete.wait()
        written = await app.events()
    assert external.got[1:] == written
    assert [event.event_type for event in written] == [
        "policy_decision",
        "tool_invocation_start",
        "tool_invocation_end",
    ]


@dataclass
class Lines:
    written: list[str] = field(default_factory=list[str])

    def info(self, line: str) -> None:
        self.written.append(line)

    warning = error = info


@pytest.mark.requirement("C14.2")
async def test_the_log_has_the_routers_lines_in_the_seeds_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "openfang.pipeline")
    async with house(tmp_path, config='[policy]\nprofile = "seed"\n') as app:
        result = await ToolRouter().invoke_tool("mcp:demo:echo", {}, InvocationContext())
        await ToolRouter().invoke_tool("mcp:demo:write_file", {}, InvocationContext())
        refused = (await app.events())[-1]
    names: dict[str, Any] = {
        "logger": Lines(),
        "server_id": "demo",
        "method": "tools/call",
        "request_id": 1,
        "tool_id": "mcp:demo:echo",
        "result": result,
        "decision": PolicyDecision(
            allowed=False, reason=refused.payload["reason"].removeprefix("Policy violation: ")
        ),
    }
    routers_lines = run(block(14), **names)["logger"].written[2:]
    assert [record.getMessage() for record in caplog.records] == routers_lines
