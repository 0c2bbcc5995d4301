"""The seed's policy engine where a house stands behind it: claims are checked."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread
from tests.compat.blocks import demo, house

from openfang.app.admin import Admin
from openfang.compat import (
    ALLOWED,
    DENIED,
    CapabilityRegistry,
    InvocationContext,
    PolicyDecision,
    PolicyGate,
    ToolDescriptor,
    ToolPolicyEngine,
    ToolRouter,
)
from openfang.core.decisions import ALLOW, Ask, Decision
from openfang.core.errors import HomeError
from openfang.core.keys import AdminToken

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.calls import Call
    from openfang.core.tools import Tool

pytestmark = pytest.mark.requirement("C20")
HIGH = ToolDescriptor(tool_id="mcp:demo:write_file", name="write_file", risk_level="HIGH")  # pyright: ignore[reportArgumentType] - a word will do
GUARDED = ToolDescriptor(tool_id="mcp:demo:x", name="x", requires_admin_token=True)


@pytest.mark.requirement("C7.7")
async def test_a_spec_must_be_claimed_and_be_frozen(tmp_path: Path) -> None:
    async with house(tmp_path) as app:
        spec = await Admin(app.parts, app.caller).freeze_spec("plan", b"plan", "default")
        engine = ToolPolicyEngine()
        said = {
            (frozen, hash_): engine.check(
                HIGH, InvocationContext(spec_frozen=frozen, spec_hash=hash_, project_id=project)
            ).allowed
            for frozen, hash_, project in (
                (True, spec.hash, "default"),
                (False, spec.hash, "default"),
                (True, "made-up", "default"),
            )
        }
        theirs = InvocationContext(spec_frozen=True, spec_hash=spec.hash, project_id="theirs")
        assert engine.check(HIGH, theirs) == DENIED("Execution mode requires spec_frozen=True")
    assert said == {(True, spec.hash): True, (False, spec.hash): False, (True, "made-up"): False}


@pytest.mark.requirement("C7.7")
async def test_an_admin_token_must_be_real_and_for_this_tool(tmp_path: Path) -> None:
    async with house(tmp_path) as app:
        admin = Admin(app.parts, app.caller)
        made = AdminToken(id="", name="x", tools=("mcp:demo:x",))
        _, secret = await admin.create_token(made, ttl=60)
        other = AdminToken(id="", name="y", tools=("mcp:demo:y",))
        _, for_another = await admin.create_token(other, ttl=60)
        said = [
            ToolPolicyEngine().check(
                GUARDED, InvocationContext(project_id="default", admin_token=token)
            )
            for token in (secret, for_another, "junk", None)
        ]
    assert said == [ALLOWED(), *[DENIED("Tool requires admin_token")] * 3]


class Raises(PolicyGate):
    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:
        raise LookupError(tool.name, ctx.mode)


class Dawdles(PolicyGate):
    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:
        assert tool
        assert ctx
        threading.Event().wait(0.15)
        return ALLOWED()


class SaysNothing(PolicyGate):
    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:  # pyright: ignore[reportReturnType] - the mistake
        print(tool.name, ctx.mode)  # noqa: T201 - and forgets to answer


class RefusesWithoutReason(PolicyGate):
    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:
        return PolicyDecision(allowed=bool(tool.name == "" and ctx))


class Asks:
    """A gate of our own form."""

    def check(self, tool: Tool, call: Call) -> Decision:
        return Ask(f"May {call.caller.id} {tool.name}?", "asks") if tool.name == "echo" else ALLOW


@pytest.mark.requirement("C7.8")
@pytest.mark.parametrize(
    ("gate", "reason", "rule"),
    [
        (Raises(), "Gate Raises raised an error", "gate_error"),
        (Dawdles(), "Gate Dawdles took over 100 ms", "gate_timeout"),
        (SaysNothing(), "Gate SaysNothing raised an error", "gate_error"),
        (RefusesWithoutReason(), "Gate RefusesWithoutReason refused", "custom_gate"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, PolicyGate) else "",
)
async def test_a_registered_gate_that_fails_refuses_in_both(
    tmp_path: Path, gate: PolicyGate, reason: str, rule: str
) -> None:
    source = demo()
    async with house(tmp_path, source=source):
        engine = ToolPolicyEngine()
        engine.register_gate(gate)
        echo = CapabilityRegistry().get_tool("mcp:demo:echo")
        assert echo is not None
        result = await ToolRouter().invoke_tool("mcp:demo:echo", {}, InvocationContext())
        decision = await to_thread.run_sync(engine.check, echo, InvocationContext())
    assert decision == DENIED(reason)
    assert (result.error, result.metadata["rule"]) == (f"Policy violation: {reason}", rule)
    assert source.reached == 0


@pytest.mark.requirement("C7.8")
async def test_a_gate_of_our_form_may_be_registered_and_a_question_is_no_yes(
    tmp_path: Path,
) -> None:
    async with house(tmp_path):
        engine = ToolPolicyEngine()
        engine.register_gate(Asks())  # pyright: ignore[reportArgumentType] - its class names it
        echo = CapabilityRegistry().get_tool("mcp:demo:echo")
        assert echo is not None
        assert engine.check(echo, InvocationContext()) == DENIED("May key:admin echo?")
        result = await ToolRouter().invoke_tool("mcp:demo:echo", {}, InvocationContext())
    assert (result.success, result.metadata["status"]) == (False, 202)
    asking = [gate["gate"] for gate in result.metadata["gates"] if gate["verdict"] == "ask"]
    assert asking == ["Asks"]


class Watches(PolicyGate):
    """Remembers what it was shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[ToolDescriptor, InvocationContext]] = []

    def check(self, tool: ToolDescriptor, ctx: InvocationContext) -> PolicyDecision:
        self.seen.append((tool, ctx))
        return ALLOWED()


@pytest.mark.requirement("C7.8")
async def test_a_gate_is_shown_what_is_true_of_the_call(tmp_path: Path) -> None:
    gate = Watches()
    async with house(tmp_path) as app:
        spec = await Admin(app.parts, app.caller).freeze_spec("plan", b"plan", "default")
        ToolPolicyEngine().register_gate(gate)
        for ctx in (
            InvocationContext(spec_frozen=True, spec_hash="made-up", session_id="s"),
            InvocationContext(spec_hash=spec.hash, task_id="t", policy_blacklist=["payments"]),
        ):
            await ToolRouter().invoke_tool("mcp:demo:echo", {}, ctx)
        echo = CapabilityRegistry().get_tool("mcp:demo:echo")
    assert [tool for tool, _ in gate.seen] == [echo, echo]
    assert [ctx for _, ctx in gate.seen] == [
        InvocationContext(
            spec_frozen=False,
            spec_hash="made-up",
            project_id="default",
            policy_blacklist=frozenset(),
            session_id="s",
        ),
        InvocationContext(
            spec_frozen=True,
            spec_hash=spec.hash,
            project_id="default",
            policy_blacklist=frozenset({"payments"}),
            task_id="t",
        ),
    ]


def test_a_gate_that_nobody_would_ask_is_not_registered() -> None:
    with pytest.raises(HomeError):
        ToolPolicyEngine().register_gate(Watches())
