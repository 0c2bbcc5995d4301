"""The parts that tests are made of do what they say, against the real pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from openfang.core.calls import Admitted, Caller
from openfang.core.errors import CallRefused, SourceFailed, UnknownTool
from openfang.core.ids import Kind
from openfang.core.results import Result, error_result
from openfang.core.tools import Risk, Trust
from openfang.registry.classify import Overrides
from openfang.testing import ManualClock, TableSource, foreign_tool, open_test_app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C7.3", "C7.11")


async def echo(arguments: Mapping[str, Any]) -> str:
    return arguments["text"]


async def fail(_: Mapping[str, Any]) -> Result:
    return error_result("it is raining")


def demo() -> TableSource:
    table = {"echo": (foreign_tool("demo", "echo"), echo), "fail": ({"risk": Risk.LOW}, fail)}
    return TableSource(Kind.MCP, "demo", table)


async def test_a_call_takes_the_pipeline_to_the_function_and_back(tmp_path: Path) -> None:
    source = demo()
    async with open_test_app(tmp_path / "home", sources=[source]) as app:
        result = await app.call("mcp_demo_echo", text="hello")
        written = [event.event_type for event in await app.events()]
    assert (result.text, source.reached) == ("hello", 1)
    assert written == ["policy_decision", "tool_invocation_start", "tool_invocation_end"]
    assert source.calls[0].call.edge == "test"


async def test_a_function_may_answer_with_a_whole_result(tmp_path: Path) -> None:
    async with open_test_app(tmp_path, sources=[demo()]) as app:
        result = await app.call("mcp:demo:fail")
    assert (result.is_error, result.text) == (True, "it is raining")


async def test_a_source_refuses_what_did_not_come_through_the_pipeline(tmp_path: Path) -> None:
    source = demo()
    tool = foreign_tool("demo", "echo")
    async with open_test_app(tmp_path, sources=[source]) as app:
        call = app.make("mcp:demo:echo", {"text": "x"})
        forged = Admitted(call=call, tool=tool, stamp=b"forged", timeout=1)
        for refusing in (source, demo()):
            with pytest.raises(SourceFailed):
                await refusing.execute(forged)
    assert source.reached == 0


async def test_a_home_can_be_opened_again_with_another_configuration(tmp_path: Path) -> None:
    async with open_test_app(tmp_path, sources=[demo()]) as app:
        first = app.caller
        await app.call("mcp:demo:echo", text="1")
    config = '[tools]\ndisabled = ["system_time"]\n[limits]\nburst = 10\n'
    async with open_test_app(tmp_path, config=config) as app:
        assert (app.caller, app.parts.config.limits.burst) == (first, 10)
        with pytest.raises(CallRefused, match="disabled"):
            await app.call("system_time")
        with pytest.raises(UnknownTool):
            await app.call("mcp:demo:echo", text="2")


async def test_a_test_may_call_as_somebody_else(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        call = app.make("system_time", {}, caller=Caller(id="key:nobody"))
        with pytest.raises(UnknownTool):
            await app.invoke(call)


async def test_the_clock_moves_only_when_told(tmp_path: Path) -> None:
    clock = ManualClock(now_ns=1_000_000_000_000_000_000)
    async with open_test_app(tmp_path, clock=clock) as app:
        before = await app.call("system_time")
        clock.advance(3600)
        after = await app.call("system_time")
    assert after.structured["unix"] - before.structured["unix"] == 3600
    assert clock.monotonic() == 3600
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)


async def test_explain_decides_without_a_call(tmp_path: Path) -> None:
    source = demo()
    async with open_test_app(tmp_path, sources=[source]) as app:
        explanation = await app.explain("mcp:demo:echo", text="x")
    assert (explanation.outcome, source.reached) == ("allow", 0)


def test_a_foreign_tool_is_classified_as_a_servers_tool_is() -> None:
    assert foreign_tool("s", "delete_file").risk is Risk.CRITICAL
    assert foreign_tool("s", "do", "Deletes every file.").risk is Risk.CRITICAL
    hinted = foreign_tool("s", "write_file", annotations={"readOnlyHint": True}, trust=Trust.HIGH)
    assert (hinted.risk, hinted.id) == (Risk.LOW, "mcp:s:write_file")
    stated = foreign_tool("s", "delete_file", overrides=Overrides(risk=Risk.LOW), enabled=False)
    assert (stated.risk, stated.enabled) == (Risk.LOW, False)
