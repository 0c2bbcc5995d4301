"""Two tools in the place of many: what is found, what is called, and what that spares."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.app.offering.shop import call, entry, names, shop, table

from openfang.core.errors import GuardTripped, InvalidArguments, UnknownTool
from openfang.core.events import TOOL_INVOCATION_START
from openfang.core.ids import Kind
from openfang.edges.mcp.ports import Place
from openfang.testing import TableSource, foreign_tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.edges.mcp.ports import Offer

pytestmark = pytest.mark.requirement("C17.2")
MANY = Place(toolset="many")
SEARCH = '[toolsets.many]\nservers = ["work"]\nmode = "search"\n' + entry("work")


def schema(number: int) -> dict[str, Any]:
    """What a middling tool of a real server takes."""
    text = {"type": "string", "description": "What it is about, in the words of its owner."}
    return {
        "type": "object",
        "properties": {f"field_{number}": text, "owner": text, "limit": {"type": "integer"}},
        "required": [f"field_{number}"],
    }


def work(count: int = 0) -> TableSource:
    async def said(arguments: Mapping[str, Any]) -> str:
        return f"done {dict(arguments)}"

    described = {
        "create_invoice": "Write a bill for a customer and send it.",
        "list_invoices": "List bills that were sent, newest first.",
        "book_flight": "Reserve a seat on a plane.",
        "weather_report": "Tell how warm it will be, and whether it rains.",
        **{f"report_{n}": f"Show the figures of department {n}." for n in range(count - 4)},
    }
    return TableSource(
        Kind.MCP,
        "work",
        {
            name: (
                foreign_tool("work", name, text, schema=schema(number), tags=frozenset()),
                said,
            )
            for number, (name, text) in enumerate(described.items())
        },
    )


def wire_bytes(offer: Offer) -> int:
    entries = [
        {"name": one.name, "description": one.description, "inputSchema": one.tool.input_schema}
        for one in offer.tools()
    ]
    return len(json.dumps(entries))


async def found(offer: Offer, query: str, **more: Any) -> list[str]:
    result = await call(offer, "search_tools", query=query, **more)
    assert json.loads(result.text) == result.structured["tools"]
    return [one["name"] for one in result.structured["tools"]]


async def test_two_tools_stand_for_all_and_the_best_fit_comes_first(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        offer = here.at(MANY)

        assert names(offer) == ["call_tool", "search_tools"]
        assert offer.find("search_tools") is offer.tools()[1]
        assert offer.find("mcp_work_book_flight") is None
        assert "search_tools" in offer.instructions
        assert (await found(offer, "reserve a plane seat"))[0] == "mcp_work_book_flight"
        assert (await found(offer, "list bills", limit=1)) == ["mcp_work_list_invoices"]
        assert (await found(offer, "will it rain?"))[0] == "mcp_work_weather_report"
        assert set(await found(offer, "anInvoice")) == {
            "mcp_work_create_invoice",
            "mcp_work_list_invoices",
        }


async def test_what_is_found_has_all_that_a_call_needs(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        result = await call(here.at(MANY), "search_tools", query="book a flight", limit=1)

    assert result.structured["tools"] == [
        {
            "name": "mcp_work_book_flight",
            "description": "Reserve a seat on a plane.",
            "inputSchema": schema(2),
        }
    ]


async def test_words_that_fit_nothing_find_nothing(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        result = await call(here.at(MANY), "search_tools", query="zzz")

    assert (result.structured, result.is_error) == ({"tools": []}, False)
    assert result.text == "No tool fits. Try other words."


async def test_what_was_found_is_called_on_the_same_path_under_its_own_id(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        offer = here.at(MANY)
        await call(offer, "search_tools", query="flight")
        result = await call(
            offer, "call_tool", name="mcp_work_book_flight", arguments={"field_2": "Oslo"}
        )
        with pytest.raises(InvalidArguments, match="field_2"):
            await call(offer, "call_tool", name="mcp_work_book_flight", arguments={"field_2": 1})
        events = await here.app.events()

    assert result.text == "done {'field_2': 'Oslo'}"
    started = [e.context["tool"] for e in events if e.event_type == TOOL_INVOCATION_START]
    assert started == ["builtin:search_tools", "mcp:work:book_flight"]


async def test_nothing_outside_of_the_set_is_found_or_called(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work(), table("other", "book_flight")]) as here:
        offer = here.at(MANY)

        assert await found(offer, "book flight") == ["mcp_work_book_flight"]
        for outside in ("mcp_other_book_flight", "file_read", "search_tools", "call_tool", "none"):
            with pytest.raises(UnknownTool):
                await call(offer, "call_tool", name=outside)
        for unlisted in ("mcp_work_book_flight", "mcp_other_book_flight", "none"):
            with pytest.raises(UnknownTool):
                await call(offer, unlisted)


async def test_who_may_see_little_finds_little_and_may_search_all_the_same(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        offer = here.at(MANY, here.holder("mcp:work:*_invoice*"))

        found_names = await found(offer, "invoice flight weather", limit=20)
        assert sorted(found_names) == ["mcp_work_create_invoice", "mcp_work_list_invoices"]
        with pytest.raises(UnknownTool):
            await call(offer, "call_tool", name="mcp_work_book_flight")


async def test_a_search_with_other_arguments_is_refused_on_record(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        offer = here.at(MANY)
        for wrong in ({}, {"query": ""}, {"query": "x", "limit": 0}, {"query": "x", "more": 1}):
            with pytest.raises(InvalidArguments):
                await call(offer, "search_tools", **wrong)
        events = await here.app.events()
        unreadable: list[dict[str, Any]] = [{}, {"name": 1}, {"name": "x", "arguments": []}]
        for wrong in unreadable:
            with pytest.raises(InvalidArguments, match="name of a tool"):
                await call(offer, "call_tool", **wrong)

    assert [event.payload["rule"] for event in events] == ["schema_mismatch"] * 4


async def test_a_search_has_the_rate_and_the_gates_of_any_call(tmp_path: Path) -> None:
    limits = "[limits]\ncells_per_minute = 5\nburst = 5\n"
    async with shop(tmp_path, SEARCH + limits, [work()]) as here:
        offer = here.at(MANY)
        await call(offer, "search_tools", query="flight")
        with pytest.raises(GuardTripped):
            await call(offer, "search_tools", query="flight")


async def test_renamed_tools_are_found_and_called_by_their_names_here(tmp_path: Path) -> None:
    config = SEARCH.replace('mode = "search"', 'mode = "search"\nprefix = false')
    async with shop(tmp_path, config, [work()]) as here:
        offer = here.at(MANY)

        assert (await found(offer, "reserve a seat"))[0] == "book_flight"
        arguments = {"field_2": "Oslo"}
        answer = await call(offer, "call_tool", name="book_flight", arguments=arguments)
        assert answer.text == "done {'field_2': 'Oslo'}"


async def test_only_as_many_are_shown_as_can_be_read_whole(tmp_path: Path) -> None:
    config = SEARCH + "[results]\nmax_chars = 1000\n"
    async with shop(tmp_path, config, [work(50)]) as here:
        result = await call(here.at(MANY), "search_tools", query="department figures", limit=20)

    assert 1 <= len(result.structured["tools"]) < 5
    assert len(result.text) <= 1000


async def test_at_500_tools_a_client_reads_99_percent_fewer_bytes_with_what_it_finds(
    tmp_path: Path,
) -> None:
    full = '[toolsets.all]\nservers = ["work"]\n'
    async with shop(tmp_path, full + SEARCH, [work(500)]) as here:
        whole, two = here.at(Place(toolset="all")), here.at(MANY)
        result = await call(two, "search_tools", query="book a flight")

        assert len(whole.tools()) == 500
        assert wire_bytes(two) + len(result.text) <= 0.01 * wire_bytes(whole)


async def test_whoever_may_call_it_can_search_all_that_it_sees_by_its_id(tmp_path: Path) -> None:
    async with shop(tmp_path, SEARCH, [work()]) as here:
        result = await here.app.call("builtin:search_tools", query="reserve a seat on a plane")
        with pytest.raises(UnknownTool):
            await here.app.invoke(
                here.app.make("builtin:search_tools", {"query": "x"}, caller=here.holder("mcp:*"))
            )

    assert result.structured["tools"][0]["name"] == "mcp_work_book_flight"
