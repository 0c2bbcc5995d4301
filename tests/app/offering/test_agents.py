"""Each agent is a server of its own: what it exposes, with the grants of it and its caller."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.app.offering.shop import Shop, call, names, shop, table

from openfang.app.offering.local import local_caller
from openfang.core.calls import Grants, Mode, Role
from openfang.core.errors import NotFound, PolicyViolation, UnknownTool
from openfang.core.tools import Risk
from openfang.edges.mcp.ports import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core.calls import Caller
    from openfang.testing import OpenApp

pytestmark = pytest.mark.requirement("C4.10", "C4.7")
SEED = Path(__file__).parents[2] / "data" / "seeds" / "004-02-document.json"
PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"
CODER = Place(agent="coder")


def put(folder: Path, text: str, file: str = "agent.toml") -> None:
    place = folder / "agents" / "coder"
    place.mkdir(parents=True, exist_ok=True)
    (place / file).write_text(text)


async def opened(here: Shop) -> None:
    await opened_by(here.app)


async def opened_by(app: OpenApp) -> None:
    assert app.parts.agents
    await app.parts.agents.opened()


EXPOSED = """
name = "coder"
version = "1.2.0"
description = "Writes code."
[capabilities]
tools = ["mcp:fs:*", "mcp:git:status", "builtin:file_list"]
[mcp]
expose_tools = ["mcp:fs:read_*", "git:*", "file_list", "builtin:file_read"]
private_tools = ["fs:read_secret"]
"""


def from_the_seed() -> str:
    return f"""{{
        "identity": {{ "id": "coder", "version": "1.0.0" }},
        "capabilities": {{ "tools": ["mcp:*"] }},
        {SEED.read_text()}
    }}"""


def from_the_page() -> str:
    shown = re.search(
        r"^### Agents\n.*?```json[^\n]*\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert shown
    return shown[1]


@pytest.mark.requirement("C1.5", "C2.4", "C19.3")
@pytest.mark.parametrize("written", [from_the_seed, from_the_page])
async def test_the_seeds_agent_shows_the_two_tools_that_it_exposes(
    tmp_path: Path, written: Callable[[], str]
) -> None:
    put(tmp_path, written(), "agent.json")
    sources = [
        table("fs", "read_file", "write_file"),
        table("git", "status"),
        table("admin", "reset"),
    ]
    async with shop(tmp_path, sources=sources) as here:
        await opened(here)
        offer = here.at(CODER)

        assert offer.info == {"name": "coder", "version": "1.0.0"}
        assert names(offer) == ["mcp_fs_read_file", "mcp_git_status"]
        for name in ("fs:read_file", "mcp_fs_read_file", "mcp:fs:read_file"):
            answer = await call(offer, name, path="README.md")
            assert answer.text == "read_file {'path': 'README.md'}"
        for hidden in ("admin:reset", "mcp_admin_reset", "fs:write_file", "mcp:fs:write_file"):
            with pytest.raises(UnknownTool):
                await call(offer, hidden)


async def test_what_is_private_stays_so_and_what_is_not_granted_is_not_exposed(
    tmp_path: Path,
) -> None:
    put(tmp_path, EXPOSED)
    sources = [table("fs", "read_file", "read_secret"), table("git", "status", "push")]
    async with shop(tmp_path, sources=sources) as here:
        await opened(here)
        offer = here.at(CODER)

        assert names(offer) == ["file_list", "mcp_fs_read_file", "mcp_git_status"]
        assert offer.instructions == "Writes code."
        for hidden in ("fs:read_secret", "mcp_fs_read_secret", "git:push", "file_read"):
            with pytest.raises(UnknownTool):
                await call(offer, hidden)


async def test_an_agent_that_exposes_nothing_offers_nothing(tmp_path: Path) -> None:
    put(tmp_path, 'name = "coder"\n[capabilities]\ntools = ["*"]\n')
    async with shop(tmp_path, sources=[table("fs", "read_file")]) as here:
        await opened(here)
        offer = here.at(CODER)

        assert list(offer.tools()) == []
        assert list(offer.resources()) == list(offer.prompts()) == []
        with pytest.raises(UnknownTool):
            await call(offer, "fs:read_file")


async def test_an_agent_that_the_caller_may_not_call_is_not_there(tmp_path: Path) -> None:
    put(tmp_path, EXPOSED)
    async with shop(tmp_path, sources=[table("fs", "read_file")]) as here:
        await opened(here)
        offer = here.at(CODER, here.holder("agent:coder", "mcp:fs:*"))
        with pytest.raises(NotFound, match="No agent coder is there"):
            here.at(CODER, here.holder("mcp:fs:*"))

        assert names(offer) == ["mcp_fs_read_file"]


async def test_calls_run_with_what_the_caller_and_the_agent_may_both(tmp_path: Path) -> None:
    put(tmp_path, EXPOSED)
    sources = [table("fs", "read_file"), table("git", "status")]
    async with shop(tmp_path, sources=sources) as here:
        await opened(here)
        offer = here.at(CODER, here.holder("agent:coder", "mcp:fs:read_file"))
        assert (await call(offer, "fs:read_file")).text == "read_file {}"
        with pytest.raises(UnknownTool):
            await call(offer, "git:status")
        assert names(offer) == ["mcp_fs_read_file"]


async def test_an_administrator_is_none_in_the_place_of_an_agent(tmp_path: Path) -> None:
    put(
        tmp_path,
        'name = "coder"\n[capabilities]\ntools = ["*"]\n[mcp]\nexpose_tools = ["agent_kill"]\n',
    )
    async with shop(tmp_path) as here:
        await opened(here)
        assert here.app.caller.role is Role.ADMIN
        with pytest.raises(PolicyViolation, match="may not end echo"):
            await call(here.at(CODER), "agent_kill", agent_id="echo")


async def test_an_agent_that_plans_changes_nothing_for_others_either(tmp_path: Path) -> None:
    put(tmp_path, EXPOSED + '[policy]\nmode = "planning"\n')
    source = table("fs", "read_file")
    tool = replace(source.tools()[0], tags=frozenset({"fs.write"}), risk=Risk.LOW)

    async def written(arguments: object) -> str:
        return str(arguments)

    source.put("read_file", tool, written)
    async with shop(tmp_path, sources=[source]) as here:
        await opened(here)
        assert here.app.caller.mode is Mode.EXECUTION
        with pytest.raises(PolicyViolation, match="Planning mode"):
            await call(here.at(CODER), "fs:read_file")


def at_home(here: Shop) -> Caller:
    return local_caller(here.app.parts, CODER)


@pytest.mark.requirement("C4.1")
async def test_over_stdio_an_agents_place_is_the_same(tmp_path: Path) -> None:
    put(tmp_path, EXPOSED)
    async with shop(tmp_path, sources=[table("fs", "read_file")]) as here:
        await opened(here)
        offer = here.at(CODER, at_home(here))

        assert names(offer) == ["file_list", "mcp_fs_read_file"]
        assert offer.caller.grants == Grants(tools=("*",))
        assert (await call(offer, "fs:read_file")).text == "read_file {}"
