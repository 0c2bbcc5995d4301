"""Who hears of changes to the tools: those whose own list is not what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.app.offering.shop import Shop, entry, names, shop, table
from tests.app.offering.test_agents import EXPOSED, opened, put
from tests.app.offering.test_federation import Heard

from openfang.app.build import reconfigure
from openfang.app.offering.local import local_caller
from openfang.config.load import load
from openfang.core.ids import Kind
from openfang.core.news import Listed
from openfang.edges.mcp.ports import Place

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C4.5")
SMALL = Place(toolset="small")


async def reload(here: Shop) -> None:
    parts, nothing = here.app.parts, dict[str, str]()
    reconfigure(parts, await anyio.to_thread.run_sync(load, parts.home.path, nothing))


async def once(heard: Heard) -> None:
    await heard.until(lambda news: Listed.TOOLS in news)


@pytest.mark.requirement("C4.7")
async def test_tools_that_come_and_go_are_told_to_who_sees_them(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        git, files, later = Heard(), Heard(), Heard()
        stops = [
            here.at(caller=here.holder("mcp:git:*")).watch(git),
            here.at(caller=here.holder("mcp:files:*")).watch(files),
        ]
        here.app.add(table("git", "status"))
        await once(git)
        assert files.news == []

        stops.append(here.at(caller=here.holder("mcp:git:*")).watch(later))
        here.app.parts.remove(Kind.MCP, "git")
        await once(later)

        assert git.news == [Listed.TOOLS, Listed.TOOLS]
        assert files.news == []
        for stop in stops:
            stop()


async def test_many_changes_at_once_are_told_once_and_none_after_the_end(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        heard, gone = Heard(), Heard()
        here.at().watch(gone)()
        stop = here.at().watch(heard)
        for number in range(20):
            here.app.add(table(f"s{number}", "tool"))
        await once(heard)
        stop()
        stop()
        here.app.add(table("one-more", "tool"))

        assert heard.news == [Listed.TOOLS]
        assert gone.news == []


async def test_a_change_that_nobody_could_see_is_not_told(tmp_path: Path) -> None:
    async with shop(tmp_path, sources=[table("git", "status")]) as here:
        heard = Heard()
        stop = here.at().watch(heard)
        before = here.at().tools()
        here.app.add(table("git", "status"))
        here.app.parts.news.publish(Listed.TOOLS)
        here.app.parts.news.publish(Listed.RESOURCES)
        here.app.add(table("git", "status", "push"))
        await once(heard)

        assert heard.news == [Listed.TOOLS]
        assert len(here.at().tools()) == len(before) + 1
        stop()


@pytest.mark.requirement("C17.1", "C2.9")
async def test_another_toolset_after_a_reload_is_told(tmp_path: Path) -> None:
    config = '[toolsets.small]\ntools = ["mcp:git:status"]\n'
    async with shop(tmp_path, config, [table("git", "status", "push")]) as here:
        small, whole = Heard(), Heard()
        offer = here.at(SMALL)
        stops = [offer.watch(small), here.at().watch(whole)]
        file = anyio.Path(here.app.parts.home.config_file)
        await file.write_text(config.replace("status", "*"))
        await reload(here)
        await once(small)

        assert names(offer) == ["mcp_git_push", "mcp_git_status"]
        await file.write_text("")
        await reload(here)
        await small.until(lambda news: news.count(Listed.TOOLS) > 1)
        assert whole.news == []
        for stop in stops:
            stop()


@pytest.mark.requirement("C4.10")
async def test_what_an_agent_exposes_from_now_on_is_told(tmp_path: Path) -> None:
    put(tmp_path, EXPOSED)
    async with shop(tmp_path, sources=[table("fs", "read_file", "write_file")]) as here:
        await opened(here)
        heard, offer = Heard(), here.at(Place(agent="coder"))
        stop = offer.watch(heard)
        assert names(offer) == ["file_list", "mcp_fs_read_file"]
        manifest = anyio.Path(tmp_path / "agents" / "coder" / "agent.toml")
        await manifest.write_text(EXPOSED.replace("fs:read_*", "fs:write_*"))
        await once(heard)

        assert names(offer) == ["file_list", "mcp_fs_write_file"]
        stop()


@pytest.mark.requirement("C4.1")
async def test_over_stdio_agents_that_come_and_go_are_told_within_a_second(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        await opened(here)
        heard = Heard()
        offer = here.at(caller=local_caller(here.app.parts, Place()))
        stop = offer.watch(heard)
        put(tmp_path, EXPOSED)
        with anyio.fail_after(30):
            await once(heard)

        assert "openfang_agent_coder" in names(offer)
        stop()


@pytest.mark.requirement("C17.2")
async def test_in_search_mode_the_list_never_changes(tmp_path: Path) -> None:
    config = '[toolsets.small]\nservers = ["git"]\nmode = "search"\n' + entry("git")
    async with shop(tmp_path, config) as here:
        small, whole = Heard(), Heard()
        stops = [here.at(SMALL).watch(small), here.at().watch(whole)]
        here.app.add(table("git", "status"))
        await once(whole)

        assert small.news == []
        for stop in stops:
            stop()
