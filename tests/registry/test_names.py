from __future__ import annotations

import random
import re
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.ids import Kind, tool_id
from openfang.core.tools import Tool
from openfang.registry.names import (
    NameTable,
    extract_mcp_server,
    format_mcp_tool_name,
    is_mcp_tool,
)

pytestmark = pytest.mark.requirement("C1.1", "C1.2", "C1.3")

VALID = re.compile(r"\A[a-zA-Z0-9_-]{1,64}\Z")
PARTS = st.text(alphabet="aAbB_-c.ü é/1", min_size=0, max_size=6) | st.text(
    min_size=60, max_size=80
)


def mcp(server: str, name: str) -> Tool:
    return Tool(id=tool_id(Kind.MCP, server, name), kind=Kind.MCP, source=server, name=name)


def ext(extension: str, name: str) -> Tool:
    id_ = tool_id(Kind.EXTENSION, extension, name)
    return Tool(id=id_, kind=Kind.EXTENSION, source=extension, name=name)


def builtin(name: str, *aliases: str) -> Tool:
    id_ = tool_id(Kind.BUILTIN, name)
    return Tool(id=id_, kind=Kind.BUILTIN, source="builtin", name=name, aliases=aliases)


def agent(name: str) -> Tool:
    return Tool(id=tool_id(Kind.AGENT, name), kind=Kind.AGENT, source=name, name=name)


def peer(name: str) -> Tool:
    return Tool(id=tool_id(Kind.A2A, name), kind=Kind.A2A, source=name, name=name)


TOOLS = st.lists(
    st.builds(mcp, PARTS, PARTS)
    | st.builds(ext, PARTS, PARTS)
    | st.builds(agent, PARTS)
    | st.builds(peer, PARTS),
    max_size=12,
    unique_by=lambda tool: tool.id,
)
BUILTINS = [builtin("file_read"), builtin("a2a_send"), builtin("shell_exec", "bash_exec")]


def names(table: NameTable, *tools: Tool) -> list[str]:
    return [table.names[tool.id] for tool in tools]


def six(tool: Tool) -> str:
    return sha256(tool.id.encode()).hexdigest()[:6]


def test_each_kind_has_its_form() -> None:
    tools = [
        builtin("file_read"),
        mcp("My-Server", "Get.Item"),
        agent("Code-Helper"),
        ext("pdf", "pdf_split"),
        peer("Other Node"),
    ]
    table, collisions = NameTable().assign(tools)
    assert names(table, *tools) == [
        "file_read",
        "mcp_my_server_get_item",
        "openfang_agent_code_helper",
        "pdf_split",
        "a2a_other_node",
    ]
    assert not collisions


@pytest.mark.parametrize("order", range(6))
def test_the_three_that_look_alike_all_stay_callable(order: int) -> None:
    trio = [mcp("a", "b_c"), mcp("a-b", "c"), mcp("a_b", "C")]
    random.Random(order).shuffle(trio)  # noqa: S311 - an order, not a secret
    table, collisions = NameTable().assign(trio)
    first, second, third = trio
    assert names(table, *trio) == [
        "mcp_a_b_c", f"mcp_a_b_c_{six(second)}", f"mcp_a_b_c_{six(third)}",
    ]  # fmt: skip
    assert [table.owners[name] for name in names(table, *trio)] == [tool.id for tool in trio]
    assert [(c.holder, c.claimant) for c in collisions] == [
        (first.id, second.id), (first.id, third.id),
    ]  # fmt: skip


@given(TOOLS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_names_are_unique_valid_and_survive_restart_and_reordering(
    tools: list[Tool], chance: random.Random
) -> None:
    first, _ = NameTable().assign([*BUILTINS, *tools])
    assert all(VALID.match(name) for name in first.names.values())
    assert len(set(first.names.values())) == len(tools) + len(BUILTINS)
    assert {name: id_ for id_, name in first.names.items()} == first.owners
    shuffled = [*BUILTINS, *tools]
    chance.shuffle(shuffled)
    restarted = NameTable.of(first.names)
    for tool in shuffled:
        restarted, collisions = restarted.assign([tool])
        assert not collisions
    assert restarted.names == first.names
    assert restarted.owners == first.owners


@given(TOOLS, st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_built_ins_have_their_own_name_whoever_came_first(
    tools: list[Tool], chance: random.Random
) -> None:
    rivals = [ext("e", "file_read"), peer("send"), ext("e", "bash_exec"), ext("f", "shell_exec")]
    everybody = [*BUILTINS, *tools, *rivals]
    chance.shuffle(everybody)
    table = NameTable()
    for tool in everybody:
        table, _ = table.assign([tool])
    assert names(table, *BUILTINS) == ["file_read", "a2a_send", "shell_exec"]
    assert len(set(table.names.values())) == len(table.names)
    assert "bash_exec" not in table.owners
    assert all(VALID.match(name) for name in table.names.values())


def test_a_foreign_tool_gives_a_stored_name_back_to_a_built_in_only() -> None:
    rival = ext("e", "file_read")
    table, _ = NameTable().assign([rival])
    assert names(table, rival) == ["file_read"]
    table, collisions = NameTable.of(table.names).assign([builtin("file_read")])
    assert names(table, rival) == [f"file_read_{six(rival)}"]
    assert [(c.holder, c.claimant) for c in collisions] == [("builtin:file_read", rival.id)]


def test_an_extension_takes_its_long_form_where_the_short_one_is_taken() -> None:
    one, two = ext("one", "split"), ext("two", "split")
    table, collisions = NameTable().assign([one, two])
    assert names(table, one, two) == ["split", "ext_two_split"]
    assert [(c.claimant, c.given) for c in collisions] == [(two.id, "ext_two_split")]


@pytest.mark.parametrize("name", ["mcp_bank_pay", "openfang_agent_boss", "a2a_node"])
def test_an_extension_cannot_take_the_name_of_another_kind_in_advance(name: str) -> None:
    table, _ = NameTable().assign([ext("evil", name)])
    assert names(table, ext("evil", name)) == [f"ext_evil_{name}"]


def test_a_long_name_is_cut_and_gets_the_suffix() -> None:
    long = mcp("server", "t" * 80)
    table, collisions = NameTable().assign([long])
    (name,) = names(table, long)
    assert name == f"{('mcp_server_' + 't' * 80)[:57]}_{six(long)}"
    assert (len(name), list(collisions)) == (64, [])


def test_a_suffix_that_is_taken_grows() -> None:
    holder, claimant = mcp("a", "b_c"), mcp("a_b", "c")
    squatter = mcp("a", f"b_c_{six(claimant)}")
    table, _ = NameTable().assign([holder, squatter, claimant])
    assert names(table, claimant) == [f"mcp_a_b_c_{sha256(claimant.id.encode()).hexdigest()[:12]}"]


def test_agents_that_look_alike_are_told_apart() -> None:
    table, collisions = NameTable().assign([agent("a-b"), agent("a_b")])
    assert names(table, agent("a-b"))[0] == "openfang_agent_a_b"
    assert names(table, agent("a_b"))[0] == f"openfang_agent_a_b_{six(agent('a_b'))}"
    assert len(collisions) == 1


def test_a_stored_table_that_is_damaged_is_mended() -> None:
    stored = {"mcp:a:x": "same", "mcp:b:x": "same", "mcp:c:x": "no good", "builtin:same": "same"}
    table = NameTable.of(stored)
    assert table.names == {"builtin:same": "same"}
    table, _ = table.assign([mcp("a", "x"), mcp("b", "x"), mcp("c", "x")])
    assert len(set(table.names.values())) == 4


def test_nothing_new_is_the_same_table() -> None:
    table, _ = NameTable().assign([mcp("a", "b"), *BUILTINS])
    assert table.assign([mcp("a", "b"), *BUILTINS])[0] is table


@pytest.mark.requirement("C1.4")
def test_the_helpers_of_the_seed_answer_from_the_table() -> None:
    assert format_mcp_tool_name("My-Server", "create_Issue") == "mcp_my_server_create_issue"
    tools = [mcp("my-server", "x"), mcp("my", "server_x"), builtin("file_read")]
    table, _ = NameTable().assign(tools)
    wires = names(table, *tools)
    assert [is_mcp_tool(name) for name in wires] == [True, True, False]
    assert [extract_mcp_server(name, table) for name in wires] == ["my-server", "my", None]
    assert extract_mcp_server("mcp_unknown_tool", table) is None
