"""Selections of tools, and what two sets of grants have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.calls import EVERYTHING, Caller, Grants
from openfang.core.ids import Kind, tool_id
from openfang.core.tools import Tool
from openfang.policy.grants import can_see, covers, meet
from openfang.policy.selection import (
    AGENTS,
    NOTHING,
    Both,
    Either,
    Exposure,
    Selection,
    ToolsOnly,
    names_of,
)

pytestmark = pytest.mark.requirement("C4.7")


def tool(kind: Kind, name: str, source: str = "", **facts: object) -> Tool:
    parts = (source, name) if source else (name,)
    made = Tool(id=tool_id(kind, *parts), kind=kind, source=source or name, name=name)
    return replace(made, **facts)


READ = tool(Kind.MCP, "read_file", "fs", wire_name="mcp_fs_read_file")
RESET = tool(Kind.MCP, "reset", "admin", wire_name="mcp_admin_reset")
LISTS = tool(Kind.BUILTIN, "file_list", wire_name="file_list", aliases=("ls",))
CODER = tool(Kind.AGENT, "coder", wire_name="openfang_agent_coder")
RESOURCE = tool(Kind.MCP, "resources/read", "fs", operation=True)
PROMPT = tool(Kind.MCP, "prompts/get", "fs", operation=True)
ALL = (READ, RESET, LISTS, CODER, RESOURCE, PROMPT)


@pytest.mark.requirement("C17.1")
def test_a_selection_holds_servers_tools_by_any_pattern_and_agents() -> None:
    assert [one for one in ALL if Selection(servers=frozenset({"fs"})).holds(one)] == [
        READ,
        RESOURCE,
        PROMPT,
    ]
    assert Selection(tools=("mcp_admin_*",)).holds(RESET)
    assert Selection(tools=("builtin:file_*",)).holds(LISTS)
    assert Selection(agents=("cod*",)).holds(CODER)
    assert not Selection(agents=("*",), servers=frozenset({"coder"})).holds(READ)
    assert [one for one in ALL if AGENTS.holds(one)] == [CODER]
    assert not any(NOTHING.holds(one) for one in ALL)


def test_what_is_private_is_not_exposed_by_any_name() -> None:
    for private in ("fs:read_file", "mcp:fs:*", "mcp_fs_read_file", "*"):
        assert not Exposure(exposed=("*",), private=(private,)).holds(READ)
    for exposed in ("fs:read_file", "mcp:fs:*", "mcp_fs_read_file", "fs:*"):
        assert Exposure(exposed=(exposed,)).holds(READ)
        assert not Exposure(exposed=(exposed,)).holds(RESET)
    assert Exposure(exposed=("ls",)).holds(LISTS)
    assert not Exposure(exposed=("ls",), private=("builtin:file_list",)).holds(LISTS)


@pytest.mark.requirement("C1.5")
def test_only_foreign_tools_are_named_by_their_plugin() -> None:
    assert names_of(READ) == ("mcp:fs:read_file", "mcp_fs_read_file", "fs:read_file")
    assert names_of(LISTS) == ("builtin:file_list", "file_list", "ls")


def test_resources_are_read_only_where_some_are_exposed_and_prompts_never() -> None:
    assert not Exposure(exposed=("*",)).holds(RESOURCE)
    assert Exposure(resources=("file:///*",)).holds(RESOURCE)
    assert not Exposure(exposed=("*",), resources=("*",)).holds(PROMPT)


def test_selections_join_and_cut_and_leave_operations_out() -> None:
    server, pattern = Selection(servers=frozenset({"fs"})), Selection(tools=("*read*",))

    assert [one for one in ALL if Both(server, pattern).holds(one)] == [READ, RESOURCE]
    assert [one for one in ALL if Either(AGENTS, pattern).holds(one)] == [READ, CODER, RESOURCE]
    assert [one for one in ALL if ToolsOnly(server).holds(one)] == [READ]
    assert [one for one in ALL if ToolsOnly().holds(one)] == [READ, RESET, LISTS, CODER]


TOOL_PATTERNS = (
    "*", "mcp:*", "mcp:fs:*", "mcp:fs:read_*", "mcp:fs:read_file", "mcp:*:reset", "mcp_*",
    "agent:*", "agent:coder", "builtin:*", "file_list", "mcp:f?:*", "mcp:[fg]s:*",
)  # fmt: skip
PATTERNS = st.sampled_from(TOOL_PATTERNS)
AGENT_NAMES = st.none() | st.lists(st.sampled_from(["*", "coder", "c*", "x"]), max_size=2).map(
    tuple
)
GRANTS = st.builds(Grants, tools=st.lists(PATTERNS, max_size=3).map(tuple), agents=AGENT_NAMES)


@pytest.mark.requirement("C4.10")
@settings(max_examples=500)
@given(GRANTS, GRANTS)
def test_what_two_grant_together_each_of_them_grants(one: Grants, other: Grants) -> None:
    both = Caller(id="x", grants=meet(one, other))
    for item in ALL:
        if can_see(both, item):
            assert can_see(Caller(id="x", grants=one), item)
            assert can_see(Caller(id="x", grants=other), item)


@pytest.mark.requirement("C4.10")
@given(GRANTS)
def test_everything_takes_nothing_away(one: Grants) -> None:
    for whole in (meet(one, EVERYTHING), meet(EVERYTHING, one)):
        assert whole.tools == one.tools or covers(whole.tools, one.tools[0])
        for item in ALL:
            seen = can_see(Caller(id="x", grants=whole), item)
            assert seen == can_see(Caller(id="x", grants=one), item)


@pytest.mark.requirement("C4.10")
def test_grants_that_meet_keep_what_one_covers_of_the_other() -> None:
    key = Grants(tools=("mcp:fs:*", "agent:coder"), network=("*",), agent_spawn=True)  # a person's
    agent = Grants(tools=("mcp:fs:read_*", "mcp:git:*"), network=("x.org",), agents=("coder", "y"))

    assert meet(key, agent) == Grants(
        tools=("mcp:fs:read_*",), network=("x.org",), agents=("coder",), agent_spawn=False
    )
    assert meet(Grants(tools=("mcp:*:read",)), Grants(tools=("mcp:fs:*",))).tools == ()
