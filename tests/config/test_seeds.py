"""Every configuration example of the seeds loads as it stands there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openfang.config.load import load

pytestmark = pytest.mark.requirement("C2.7")

SEEDS = Path(__file__).parent.parent / "data/seeds"


def blocks(pattern: str) -> list[Path]:
    return sorted(SEEDS.glob(pattern))


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


@pytest.fixture
def folder(home: Path) -> Path:
    home.mkdir()
    return home


def test_the_seeds_have_as_many_blocks_as_were_counted_by_hand() -> None:
    counts = {
        suffix: len(blocks(f"*.{suffix}")) for suffix in ("toml", "yaml", "json", "py.txt", "sql")
    }
    assert counts == {"toml": 22, "yaml": 3, "json": 33, "py.txt": 11, "sql": 1}


CONFIGS = blocks("*-config.toml")


@pytest.mark.parametrize("block", CONFIGS, ids=names(CONFIGS))
def test_a_complete_example_loads_unchanged(folder: Path, block: Path) -> None:
    text = block.read_text("utf-8")
    (folder / "config.toml").write_text(text, "utf-8")
    config = load(folder, {})
    assert len(config.mcp_servers) == text.count("[[mcp_servers]]")
    assert len(config.a2a.external_agents) == text.count("[[a2a.external_agents]]")
    assert config.a2a.enabled is ("[a2a]" in text)


FRAGMENTS = blocks("*-fragment.toml")


@pytest.mark.parametrize("block", FRAGMENTS, ids=names(FRAGMENTS))
def test_a_fragment_loads_inside_the_smallest_complete_file(folder: Path, block: Path) -> None:
    text = '[[mcp_servers]]\nname = "fragment"\n' + block.read_text("utf-8")
    (folder / "config.toml").write_text(text, "utf-8")
    (server,) = load(folder, {}).mcp_servers
    assert server.name == "fragment"


YAML = blocks("*-config.yaml")


@pytest.mark.parametrize("block", YAML, ids=names(YAML))
def test_a_complete_yaml_example_loads_unchanged(folder: Path, block: Path) -> None:
    (folder / "config.toml").write_text(f'include = ["{block}"]\n', "utf-8")
    (server,) = load(folder, {}).mcp_servers
    assert server.name in {"echo-math", "my-server"}


def test_the_recommended_timeouts_load_with_an_id_and_a_command(folder: Path) -> None:
    (block,) = blocks("*-fragment.yaml")
    text = block.read_text("utf-8")
    for number in range(text.count("- timeout_ms")):
        text = text.replace("- timeout_ms", f"- id: s{number}\n    command: [x]\n    timeout_ms", 1)
    (folder / "servers.yaml").write_text(text, "utf-8")
    (folder / "config.toml").write_text('include = ["servers.yaml"]\n', "utf-8")
    assert [server.timeout_secs for server in load(folder, {}).mcp_servers] == [5, 30, 60]


def test_every_json_block_without_elisions_is_json() -> None:
    whole = [
        path
        for path in blocks("*.json")
        if not {"[...]", "//"} & set(path.read_text("utf-8").split())
    ]
    assert len(whole) > 20
    for path in whole:
        text = path.read_text("utf-8")
        if "[...]" not in text and not text.startswith(("//", '"')):
            json.loads(text)
