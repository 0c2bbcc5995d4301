"""The examples of the page: what stands there is the file, and it works from its manifest on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from anyio import to_thread
from tests.sources.extensions.stage import Stage, stage

from openfang.config.extension_manifests import read_manifest

pytestmark = [pytest.mark.requirement("C6.3", "C19.3"), pytest.mark.needs("bwrap")]
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples" / "extensions"
PAGE = (ROOT / "docs" / "extensions.md").read_text()
SHOWN = re.findall(r"<!-- (docs/\S+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("file", "text"), SHOWN)
def test_what_the_page_shows_is_the_file(file: str, text: str) -> None:
    assert (ROOT / file).read_text() == text


def test_every_example_is_shown() -> None:
    names = {path.parent.name for path in EXAMPLES.glob("*/manifest.json")}
    assert {Path(file).parent.name for file, _ in SHOWN} == names


async def put(on: Stage, name: str) -> None:
    read = await to_thread.run_sync(read_manifest, EXAMPLES / name)
    declared = {key: one.default for key, one in read.manifest.config.items()}
    workspace = on.home / "workspaces" / f"ext-{name}"
    spec = read.spec(folder=EXAMPLES / name, workspace=workspace, config=declared)
    await on.extensions.put(spec)


async def test_the_example_in_python_keeps_notes(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await put(on, "notes")
        first = (await on.call("add_note", "notes", title="a", text="one")).structured
        again = (await on.call("add_note", "notes", title="a", text="two")).structured
        assert (first["by"], first["before"], again["before"]) == ("me", "", "one")
        assert await on.text("count-lines", "notes", text="one\ntwo") == "2"


async def test_the_example_in_node_measures(tmp_path: Path) -> None:
    async with stage(tmp_path) as on:
        await put(on, "shapes")
        found = await on.call("area", "shapes", width=2, height=3)
        assert found.structured == {"area": 6}
