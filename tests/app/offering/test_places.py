"""What is offered where: one rule for the list and for the call."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING

import pytest
from tests.app.offering.shop import call, entry, names, shop, table

from openfang.app.offering.local import ANYBODY, local_caller
from openfang.core.calls import Grants, Role
from openfang.core.errors import NotFound, UnknownTool
from openfang.core.events import POLICY_VIOLATION
from openfang.edges.mcp.ports import Place
from openfang.policy.selection import Selection
from openfang.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.edges.mcp.ports import Offer

pytestmark = pytest.mark.requirement("C4.7")
SMALL = Place(toolset="small")
TOOLSET = """
[toolsets.small]
servers = ["files"]
tools = ["builtin:system_*", "mcp_git_status"]
agents = ["echo"]
"""


@pytest.mark.requirement("C4.4")
async def test_the_whole_place_is_what_the_key_may_see_under_wire_names(tmp_path: Path) -> None:
    async with shop(tmp_path, sources=[table("files", "read", "drop")]) as here:
        caller = here.holder("mcp:files:*", "system_time")
        offer = here.at(caller=caller)

        assert names(offer) == ["mcp_files_drop", "mcp_files_read", "system_time"]
        assert offer.info == {"name": "openfang", "version": __version__}
        assert offer.caller is caller
        assert (await call(offer, "mcp_files_read", path="x")).text == "read {'path': 'x'}"
        assert (await call(offer, "mcp:files:read")).text == "read {}"
        for hidden in ("file_read", "builtin:file_read", "openfang_agent_echo"):
            with pytest.raises(UnknownTool):
                await call(offer, hidden, path="x")


@pytest.mark.requirement("C17.1")
async def test_a_toolset_offers_its_servers_tools_and_agents_and_nothing_else(
    tmp_path: Path,
) -> None:
    sources = [table("files", "read"), table("git", "status", "push")]
    async with shop(tmp_path, TOOLSET + entry("files"), sources) as here:
        offer = here.at(SMALL)
        await offer.settled()

        offered = ["mcp_files_read", "mcp_git_status", "openfang_agent_echo", "system_time"]
        assert names(offer) == offered
        assert (await call(offer, "openfang_agent_echo", message="hi")).text == "hi"
        for hidden in ("mcp_git_push", "mcp:git:push", "file_read", "agent:assistant"):
            with pytest.raises(UnknownTool):
                await call(offer, hidden)
        found = offer.find("mcp_git_status")
        assert found is not None
        assert found.tool.id == "mcp:git:status"
        assert offer.find("mcp_git_push") is None


@pytest.mark.requirement("C17.1")
async def test_a_toolset_grants_nothing_that_the_key_does_not(tmp_path: Path) -> None:
    sources = [table("files", "read"), table("git", "status")]
    async with shop(tmp_path, TOOLSET + entry("files"), sources) as here:
        offer = here.at(SMALL, here.holder("mcp:git:*"))

        assert names(offer) == ["mcp_git_status"]
        with pytest.raises(UnknownTool):
            await call(offer, "mcp_files_read")


@pytest.mark.requirement("C18.1")
async def test_who_is_held_to_a_selection_sees_what_it_and_the_toolset_share(
    tmp_path: Path,
) -> None:
    sources = [table("files", "read"), table("git", "status")]
    async with shop(tmp_path, TOOLSET + entry("files"), sources) as here:
        held = replace(here.app.caller, within=Selection(servers=frozenset({"git"})))

        assert names(here.at(SMALL, held)) == ["mcp_git_status"]
        assert names(here.at(caller=held)) == ["mcp_git_status"]


async def test_a_place_that_does_not_exist_is_not_found(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        with pytest.raises(NotFound, match="No toolset none"):
            here.at(Place(toolset="none"))
        with pytest.raises(NotFound, match="No agent none"):
            here.at(Place(agent="none"))
        with pytest.raises(NotFound, match="No toolset none"):
            local_caller(here.app.parts, Place(toolset="none"))


@pytest.mark.requirement("C4.1")
async def test_over_stdio_agents_are_offered_and_the_toolset_that_was_chosen(
    tmp_path: Path,
) -> None:
    agents = ["openfang_agent_assistant", "openfang_agent_echo"]
    sources = [table("files", "read"), table("git", "status", "push")]
    async with shop(tmp_path, TOOLSET + entry("files"), sources) as here:
        alone = here.at(caller=local_caller(here.app.parts, Place()))
        chosen = here.at(SMALL, local_caller(here.app.parts, SMALL))
        await alone.settled()

        assert names(alone) == agents
        assert names(chosen) == ["mcp_files_read", "mcp_git_status", *agents, "system_time"]
        assert (await call(alone, "openfang_agent_echo", message="hi")).text == "hi"
        with pytest.raises(UnknownTool):
            await call(alone, "mcp_files_read")
        with pytest.raises(UnknownTool):
            await call(chosen, "mcp_git_push")
        assert alone.caller.role is Role.USER
        assert alone.caller.id == "local-mcp"


@pytest.mark.requirement("C12.1")
async def test_anybody_over_http_sees_what_its_grants_allow_and_is_no_administrator(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, TOOLSET + entry("files"), [table("files", "read")]) as here:
        offer = here.at(caller=ANYBODY)
        await offer.settled()

        assert {"file_read", "mcp_files_read", "openfang_agent_echo"} <= set(names(offer))
        assert "openfang_agent_assistant" not in names(here.at(SMALL, ANYBODY))
        assert ANYBODY.role is Role.USER


@pytest.mark.requirement("C4.1")
async def test_the_first_list_has_the_agents_though_nobody_opened_them(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        offer = here.at()
        await offer.settled()

        assert "openfang_agent_echo" in names(offer)


@pytest.mark.requirement("C4.1")
async def test_a_call_waits_for_the_agents_as_well(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        assert (await call(here.at(), "openfang_agent_echo", message="hi")).text == "hi"


@pytest.mark.requirement("C4.6")
async def test_an_operation_is_no_tool(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        with pytest.raises(UnknownTool):
            await call(here.at(), "builtin:search_tools", query="x")


async def refused(offer: Offer, name: str) -> str:
    with pytest.raises(UnknownTool) as caught:
        await call(offer, name)
    return caught.value.message


@pytest.mark.requirement("C4.6")
@pytest.mark.parametrize("place", [Place(), SMALL], ids=["whole", "toolset"])
async def test_hidden_and_unknown_tools_answer_alike_and_only_the_audit_tells(
    tmp_path: Path, place: Place
) -> None:
    async with shop(tmp_path, TOOLSET + entry("files"), [table("git", "push")]) as here:
        offer = here.at(place, here.holder("mcp:files:*", "system_time"))
        hidden = await refused(offer, "mcp_git_push")
        unknown = await refused(offer, "mcp_git_pull")
        events = [e for e in await here.app.events() if e.event_type == POLICY_VIOLATION]

    assert hidden.replace("push", "pull") == unknown
    assert [event.payload.get("hidden") for event in events] == ["true", None]


async def took(offer: Offer, name: str) -> int:
    """How long it takes; what others do with the machine meanwhile is not counted."""
    begun = thread_time_ns()
    try:
        await call(offer, name)
    except UnknownTool:
        return thread_time_ns() - begun
    raise AssertionError(name)


@pytest.mark.requirement("C4.6")
@pytest.mark.parametrize("place", [Place(), SMALL], ids=["whole", "toolset"])
async def test_hidden_and_unknown_tools_take_the_same_time(tmp_path: Path, place: Place) -> None:
    async with shop(tmp_path, TOOLSET + entry("files"), [table("git", "push")]) as here:
        offer = here.at(place, here.holder("mcp:files:*", "system_time"))
        both: dict[str, list[int]] = {"mcp_git_push": [], "mcp_git_pull": []}
        for _ in range(1000):
            for name in (*both, *reversed(both)):  # whoever comes second has no advantage
                both[name].append(await took(offer, name))

    hidden, unknown = (median(times) for times in both.values())
    assert hidden == pytest.approx(unknown, rel=0.05)


@pytest.mark.requirement("C4.6")
async def test_ten_thousand_tools_are_listed_once_and_a_call_costs_no_list(tmp_path: Path) -> None:
    async with shop(tmp_path, sources=[table("many", *(f"t{n}" for n in range(10_000)))]) as here:
        offer, again = here.at(), here.at()
        begun = perf_counter_ns()
        listed = offer.tools()
        built = perf_counter_ns() - begun
        begun = perf_counter_ns()
        for _ in range(100):
            assert again.tools() is listed
            assert again.find("mcp_many_t777") is not None
        kept = (perf_counter_ns() - begun) / 100

        assert len(listed) > 10_000
        assert kept * 50 < built
        assert (await call(again, "mcp_many_t777")).text == "t777 {}"


async def test_who_has_the_same_grants_shares_one_list(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        one = here.at(caller=here.holder("builtin:*", name="one"))
        other = here.at(caller=here.holder("builtin:*", name="other"))
        less = here.at(caller=here.holder("builtin:file_*", name="less"))

        assert one.tools() is other.tools()
        assert names(less) == ["file_list", "file_read", "file_write"]


async def test_a_tool_that_comes_is_listed_and_called_at_once(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        offer = here.at(caller=here.holder("mcp:*"))
        assert names(offer) == []
        here.app.add(table("late", "tool"))

        assert names(offer) == ["mcp_late_tool"]
        assert (await call(offer, "mcp_late_tool")).text == "tool {}"


async def test_another_configuration_is_another_toolset(tmp_path: Path) -> None:
    async with shop(tmp_path, "[toolsets.small]\ntools = ['builtin:file_*']") as here:
        offer, parts = here.at(SMALL), here.app.parts
        assert len(names(offer)) == 3
        toolset = parts.config.toolsets["small"].model_copy(update={"tools": ("system_time",)})
        parts.config = parts.config.model_copy(update={"toolsets": {"small": toolset}})

        assert names(offer) == ["system_time"]
        with pytest.raises(UnknownTool):
            await call(offer, "file_list")
        parts.config = parts.config.model_copy(update={"toolsets": {}})
        with pytest.raises(NotFound):
            offer.tools()


def test_the_caller_of_this_machine_has_no_grants_of_its_own_beside_tools() -> None:
    assert ANYBODY.grants == Grants(tools=("*",))
