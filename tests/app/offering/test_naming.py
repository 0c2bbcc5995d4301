"""What tools are called in a toolset, and how they are described."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.app.offering.shop import call, entry, names, shop, table

from openfang.app.offering.naming import Naming
from openfang.core.errors import UnknownTool
from openfang.core.ids import Kind, tool_id, wire_name
from openfang.core.tools import Tool
from openfang.edges.mcp.ports import Place

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C17.1")
SMALL = Place(toolset="small")


async def test_without_a_prefix_tools_have_the_names_that_their_server_gave_them(
    tmp_path: Path,
) -> None:
    config = '[toolsets.small]\nservers = ["files"]\nprefix = false\n' + entry("files")
    long = "x" * 65
    source = table("files", "Read.file/v2", "file_read", "with space", long)
    async with shop(tmp_path, config, [source]) as here:
        offer = here.at(SMALL)

        assert names(offer)[:2] == ["Read.file/v2", "file_read"]
        assert "mcp_files_with_space" in names(offer)
        assert all(len(name) <= 64 for name in names(offer))
        assert (await call(offer, "Read.file/v2")).text == "Read.file/v2 {}"
        assert (await call(offer, "file_read")).text == "file_read {}"
        assert (await call(offer, "mcp_files_file_read")).text == "file_read {}"
        with pytest.raises(UnknownTool):
            await call(offer, "file_write")


async def test_one_server_without_a_prefix_is_described_in_its_own_words(tmp_path: Path) -> None:
    config = '[toolsets.small]\nservers = ["files"]\nprefix = false\n' + entry("files")
    async with shop(tmp_path, config, [table("files", read="Reads.", bare="")]) as here:
        described = {one.name: one.description for one in here.at(SMALL).tools()}
        elsewhere = {one.name: one.description for one in here.at().tools()}

    assert described == {"read": "Reads.", "bare": ""}
    assert elsewhere["mcp_files_read"] == "[MCP:files] Reads."


async def test_of_two_tools_of_one_name_the_first_by_id_keeps_it(tmp_path: Path) -> None:
    config = '[toolsets.small]\nservers = ["b", "a"]\nprefix = false\n' + entry("a") + entry("b")
    async with shop(tmp_path, config, [table("b", "read"), table("a", "read")]) as here:
        offer = here.at(SMALL)
        found = {one.name: one.tool.id for one in offer.tools()}

        assert found == {"mcp_b_read": "mcp:b:read", "read": "mcp:a:read"}
        assert [one.description for one in offer.tools()] == ["[MCP:b]", "[MCP:a]"]


async def test_names_and_descriptions_are_what_the_operator_writes(tmp_path: Path) -> None:
    config = """
        [toolsets.small]
        tools = ["builtin:file_*", "mcp:files:*"]
        rename = { "mcp:files:read" = "open-it", "file_list" = "ls" }
        descriptions = { "mcp:files:read" = "Opens it.", "file_list" = "Lists." }
    """
    async with shop(tmp_path, config, [table("files", "read")]) as here:
        offer = here.at(SMALL)
        described = {one.name: one.description for one in offer.tools()}

        assert list(described) == ["file_read", "file_write", "ls", "open-it"]
        assert (described["open-it"], described["ls"]) == ("Opens it.", "Lists.")
        assert (await call(offer, "open-it")).text == "read {}"


async def test_the_audit_knows_a_renamed_tool_by_its_id(tmp_path: Path) -> None:
    config = '[toolsets.small]\ntools = ["mcp:files:*"]\nrename = { "mcp:files:read" = "r" }'
    async with shop(tmp_path, config, [table("files", "read")]) as here:
        await call(here.at(SMALL), "r")
        tools = {event.context["tool"] for event in await here.app.events()}

    assert tools == {"mcp:files:read"}


def foreign(server: str, name: str) -> Tool:
    return Tool(
        id=tool_id(Kind.MCP, server, name),
        kind=Kind.MCP,
        source=server,
        name=name,
        wire_name=wire_name("mcp", server, name),
    )


NAMES = st.sampled_from(["a", "b", "mcp_x_a", "mcp_y_b", "a b", "c"])
TOOLS = st.lists(
    st.builds(foreign, st.sampled_from(["x", "y"]), NAMES),
    unique_by=(lambda tool: tool.id, lambda tool: tool.wire_name),
)


@settings(max_examples=300, deadline=None)
@given(TOOLS, st.dictionaries(st.sampled_from(["mcp:x:a", "mcp:y:b", "mcp_x_c"]), NAMES))
def test_every_tool_has_a_name_of_its_own_whatever_is_wished(
    tools: list[Tool], rename: dict[str, str]
) -> None:
    given_names = Naming(prefix=False, rename=rename).names(tools)

    assert given_names.keys() == {tool.id for tool in tools}
    assert len(set(given_names.values())) == len(tools)
    assert given_names == Naming(prefix=False, rename=rename).names(tools[::-1])
