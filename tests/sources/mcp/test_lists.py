"""What servers list besides tools: learnt, kept, refreshed, and never at the tools' expense."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.mcp.federation import QUICK, entry, node, until
from tests.sources.mcp.hostility import hostile, scene

from openfang.config.load import load
from openfang.core.news import Listed
from openfang.sources.mcp.abilities import read_abilities
from openfang.sources.mcp.listing import MAX_ENTRIES, list_some
from openfang.sources.mcp.lists import _well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.sources.mcp.source import McpSource

pytestmark = pytest.mark.requirement("C3.10")
ERAS = ("handshake", "modern")


def names(entries: tuple[Mapping[str, Any], ...]) -> list[str]:
    return [entry["name"] for entry in entries]


@pytest.mark.parametrize("era", ERAS)
async def test_all_pages_of_every_list_are_learnt_as_the_wire_has_them(
    tmp_path: Path, era: str
) -> None:
    async with node(tmp_path, entry("peer", era)) as opened:
        source = opened.source()
        assert source.resources == (
            *(
                {"uri": f"memo://{number}", "name": f"memo {number}", "x-kept": [number, None]}
                for number in range(3)
            ),
        )
        assert source.templates == ({"uriTemplate": "memo://{id}", "name": "memo", "x-kept": 1},)
        assert names(source.prompts) == ["greet0"]
        assert source.instructions == "ask me"
        assert source.capabilities["resources"] == {"listChanged": True, "subscribe": True}
        assert set(opened.heard) == {Listed.RESOURCES, Listed.PROMPTS}


@pytest.mark.parametrize("era", ERAS)
async def test_a_list_that_changed_is_learnt_again_and_told_of(tmp_path: Path, era: str) -> None:
    async with node(tmp_path, entry("peer", era)) as opened:
        await opened.call("change", list="resources")
        await opened.hears(Listed.RESOURCES, 2)
        assert len(opened.source().resources) == 4
        await opened.call("change", list="prompts")
        await opened.hears(Listed.PROMPTS, 2)
        assert names(opened.source().prompts) == ["greet0", "greet1"]


async def test_a_list_that_is_what_it_was_is_no_news(tmp_path: Path) -> None:
    async with node(tmp_path, entry("peer", "handshake")) as opened:
        await opened.call("change", list="resources", more=0)
        await opened.call("change", list="prompts")
        await opened.hears(Listed.PROMPTS, 2)
        assert opened.heard.count(Listed.RESOURCES) == 1
        assert len(await opened.params("resources/list")) > 2


async def test_what_is_not_announced_is_not_asked_for(tmp_path: Path) -> None:
    async with node(tmp_path, entry("peer", "handshake", "only=tools,prompts")) as opened:
        source = opened.source()
        assert (source.resources, source.templates) == ((), ())
        assert names(source.prompts) == ["greet0"]
        assert await opened.params("resources/list") == []
        assert await opened.params("resources/templates/list") == []


@pytest.mark.parametrize("era", ERAS)
async def test_what_no_client_could_read_is_left_out(tmp_path: Path, era: str) -> None:
    async with node(tmp_path, entry("peer", era, "wrong")) as opened:
        source = opened.source()
        assert names(source.resources) == ["memo 0", "memo 1", "memo 2", "null"]
        assert source.resources[3] == {"uri": "memo://null", "name": "null"}
        assert names(source.prompts) == ["greet0", "null"]


@pytest.mark.parametrize("how", ["broken", "mute"])
async def test_lists_that_fail_or_hang_harm_neither_the_tools_nor_each_other(
    tmp_path: Path, how: str
) -> None:
    more = "timeout_secs = 0.5"
    async with node(tmp_path, entry("peer", "handshake", f"{how}=resources/list", more=more)) as it:
        assert it.servers.health() == {"peer": "healthy"}
        assert (await it.call("echo", text="well")).text == "well"
        await until(lambda: it.source().prompts)
        assert (it.source().resources, len(it.source().templates)) == ((), 1)
        assert it.servers.health() == {"peer": "healthy"}


async def test_a_call_does_not_wait_for_a_list_that_hangs(tmp_path: Path) -> None:
    mute = entry("peer", "handshake", "mute=prompts/list")
    async with node(tmp_path, mute, lists=False) as opened:
        assert not opened.source().lists.known.is_set()
        assert (await opened.call("echo", text="at once")).text == "at once"


async def test_of_a_list_that_never_ends_the_first_entries_are_used(tmp_path: Path) -> None:
    many = MAX_ENTRIES + 1000
    async with node(tmp_path, entry("peer", "handshake", f"many={many}")) as opened:
        await until(lambda: len(opened.source().resources) == MAX_ENTRIES)
        assert (await opened.call("echo", text="well")).text == "well"


async def test_a_page_that_is_too_large_alone_is_no_list() -> None:
    async def page(params: Mapping[str, Any]) -> dict[str, Any]:
        cursor = params.get("cursor")
        size = 9_000_000 if cursor is None else 8_000_000
        return {"prompts": [{"name": "x" * size}], "nextCursor": f"{cursor}+"}

    assert len(await list_some(page, "prompts")) == 1


async def test_a_storm_of_changes_does_not_keep_anybody_busy(tmp_path: Path) -> None:
    pace = replace(QUICK, breath=0.3)
    async with node(tmp_path, entry("peer", "handshake"), pace=pace) as opened:
        began, before = anyio.current_time(), len(await opened.params("prompts/list"))
        for kind in ("resources", "prompts"):
            method = f"notifications/{kind}/list_changed"
            assert (await opened.call("storm", method=method, times=5_000)).text == "over"
        assert (await opened.call("echo", text="well")).text == "well"
        asked = len(await opened.params("prompts/list")) - before
        assert asked <= 2 + (anyio.current_time() - began) / 0.3
        assert opened.heard.count(Listed.PROMPTS) == 1


async def test_lists_are_asked_for_again_after_a_while(tmp_path: Path) -> None:
    async with node(
        tmp_path, entry("peer", "handshake"), pace=replace(QUICK, refresh=0.05)
    ) as opened:
        await opened.receives("prompts/list", 3)


async def test_lists_are_asked_for_again_when_the_operator_wants_it(tmp_path: Path) -> None:
    async with node(tmp_path, entry("peer", "handshake", "only=tools,resources")) as opened:
        before = len(await opened.params("resources/list"))
        assert await opened.servers.refresh() == {"peer": ""}
        await opened.receives("resources/list", before + 1)


async def test_secrets_do_not_stand_in_lists(tmp_path: Path) -> None:
    secret = "sk-proj-" + "A1b2C3d4" * 6
    async with node(tmp_path, entry("peer", "modern", f"says=use {secret}")) as opened:
        assert secret not in str(opened.source().prompts)
        assert "use " in opened.source().prompts[0]["description"]


async def test_a_server_that_is_changed_keeps_its_lists_and_one_that_is_gone_takes_them_along(
    tmp_path: Path,
) -> None:
    def other(text: str) -> None:
        opened.app.parts.home.config_file.write_text(text)
        opened.app.parts.config = load(opened.app.parts.home.path, {"HOME": str(tmp_path)})

    async with node(tmp_path, entry("peer", "handshake")) as opened:
        before: McpSource = opened.source()
        await anyio.to_thread.run_sync(
            other, entry("peer", "handshake", "late=1", more="timeout_secs = 20")
        )
        opened.servers.apply(opened.app.parts.config)
        after = opened.source()
        assert after is not before
        assert (after.resources, after.prompts) == (before.resources, before.prompts)
        assert opened.app.parts.registry.find("mcp:peer:resources/read")
        heard = len(opened.heard)
        await anyio.to_thread.run_sync(other, "")
        opened.servers.apply(opened.app.parts.config)
        assert set(opened.heard[heard:]) == {Listed.RESOURCES, Listed.PROMPTS}


@pytest.mark.requirement("C3.6")
async def test_a_server_that_says_nothing_of_lists_is_as_it_was(tmp_path: Path) -> None:
    async with scene(tmp_path, hostile()) as opened:
        await opened.servers.settled(lists=True)
        assert opened.bad.lists.known.is_set()
        assert [tool for tool in opened.bad.tools() if tool.operation] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(["uri", "name", "title", "arguments", "annotations", "size", "icons"])


@settings(max_examples=80, deadline=None)
@given(entry=st.dictionaries(FIELDS, JSON, max_size=6))
def test_no_entry_is_too_odd_to_be_judged(entry: dict[str, Any]) -> None:
    if _well_formed({k: v for k, v in entry.items() if v is not None}, "uri"):
        assert isinstance(entry["uri"], str)
        assert isinstance(entry["name"], str)


@settings(max_examples=40, deadline=None)
@given(said=st.dictionaries(st.sampled_from(["tools", "resources", "x"]), JSON, max_size=3))
def test_of_what_a_server_says_it_can_only_what_is_known_counts(said: dict[str, Any]) -> None:
    found = read_abilities(said)
    assert set(found) <= {"tools", "resources"}
    assert all(value is True for flags in found.values() for value in flags.values())
