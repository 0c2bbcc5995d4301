"""A tool that no manifest can mean is refused where it is granted, with what may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from openfang.config.builtins import BUILTINS, mistaken
from openfang.config.manifests import check_manifests
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.1")


@pytest.mark.parametrize(
    ("grant", "what"),
    [
        ("builtin:file_reed", 'expected a tool that exists, got "builtin:file_reed"; file_read'),
        ("file_raed", 'got "file_raed"; file_read is meant?'),
        ("builtin:nothing", 'expected a tool that exists, got "builtin:nothing"'),
        ("builtin:file_read", ""),
        ("bash_exec", ""),
        ("file_*", ""),
        ("mcp:files:read_file", ""),
        ("weather_of_tomorrow", ""),
    ],
)
def test_a_tool_that_cannot_exist_is_named(grant: str, what: str) -> None:
    said = mistaken(grant)

    assert what in said
    assert bool(said) is bool(what)


def test_an_agent_that_is_granted_one_is_left_out_with_file_and_line(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "coder"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text('name = "coder"\n[capabilities]\ntools = ["file_raed"]\n')

    (problem,) = check_manifests(tmp_path)

    assert str(problem).startswith("agents/coder/agent.toml:3: capabilities.tools: expected a tool")


async def test_every_built_in_is_among_the_names(tmp_path: Path) -> None:
    async with open_test_app(tmp_path) as app:
        found = {
            tool.name for tool in app.parts.registry.snapshot.select() if tool.source == "builtin"
        }

    assert found <= BUILTINS
