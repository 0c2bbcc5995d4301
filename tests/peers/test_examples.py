"""The servers of the seeds' own examples: those that can start without a network do, sandboxed."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.peers.conftest import running
from tests.peers.servers import install, runners

from openfang import compat
from openfang.compat import InvocationContext, ToolRouter

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.requirement("C16.3", "C16.2"), pytest.mark.needs("bwrap")]
ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "tests/data/seeds"
SERVERS = ROOT / "docs/examples/servers"
PROJECTS = "/home/user/projects"
# Why a server of an example cannot start where there is no network.
ONLINE = {
    "github": "its package has to be fetched, and it speaks to a service of the network",
    "postgres": "its package has to be fetched, and it needs a database",
    "puppeteer": "its package has to be fetched, and a browser with it",
    "remote-tools": "it is an address",
}
OFFLINE = {"filesystem", "echo-math", "my-server"}


def of_toml(path: Path) -> list[Mapping[str, Any]]:
    return tomllib.loads(path.read_text("utf-8")).get("mcp_servers", [])


def of_yaml(path: Path) -> list[Mapping[str, Any]]:
    return yaml.safe_load(path.read_text("utf-8"))["mcp_servers"]


TOML = [path for path in sorted(SEEDS.glob("*-config.toml")) if of_toml(path)]
YAML = sorted(SEEDS.glob("*-config.yaml"))
FILESYSTEM = [path for path in TOML if any(one["name"] == "filesystem" for one in of_toml(path))]


def test_every_server_of_every_example_is_tried_or_named_with_the_reason() -> None:
    names = {one["name"] for path in TOML for one in of_toml(path)}
    names |= {one["id"] for path in YAML for one in of_yaml(path)}
    assert names == OFFLINE | ONLINE.keys()
    assert len(FILESYSTEM) >= 2


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return runners(tmp_path_factory.mktemp("prefix"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node whose server has its package at home already: by `npm install --prefix`."""
    folder = tmp_path_factory.mktemp("node")
    install(folder / "servers" / "filesystem" / "home")
    return folder


def example(path: Path, projects: Path) -> str:
    text = path.read_text("utf-8").replace(PROJECTS, str(projects))
    for name in ONLINE:
        text = text.replace(f'name = "{name}"', f'name = "{name}"\nenabled = false')
    return text


@pytest.mark.parametrize("path", FILESYSTEM, ids=[path.name for path in FILESYSTEM])
async def test_the_filesystem_server_starts_as_the_seed_has_it(
    tmp_path: Path, house: Path, programs: str, path: Path
) -> None:
    """But for the folder, which is one that this machine has."""
    projects = tmp_path / "projects"
    projects.mkdir()
    (projects / "plan.md").write_text("figs\n")
    async with running(house, example(path, projects), path=programs) as node:
        assert node.servers.health() == {"filesystem": "healthy"}, node.servers.said
        assert all(layer.present for layer in node.servers.layers["filesystem"][:5])
        listed = await node.call("filesystem:list_directory", path=str(projects))
        assert listed.text == "[FILE] plan.md"


@pytest.mark.requirement("C2.2", "C20")
async def test_the_seeds_own_call_of_its_own_server_is_answered(
    tmp_path: Path, programs: str
) -> None:
    """AgentOS's file is read in place, and the server beside it is started by Node."""
    agentos = tmp_path / ".agentos"
    shutil.copytree(SERVERS, agentos / "servers")
    shutil.copy(SEEDS / "003-07-config.yaml", agentos / "mcp_servers.yaml")
    include = f'include = ["{agentos / "mcp_servers.yaml"}"]\n'
    async with (
        running(tmp_path / "node", include, path=programs) as node,
        compat.use(node.app.parts, node.app.caller),
    ):
        assert node.servers.health() == {"echo-math": "healthy"}, node.servers.said
        assert all(layer.present for layer in node.servers.layers["echo-math"][:5])
        invoke_tool, ctx = ToolRouter().invoke_tool, InvocationContext()
        result = await invoke_tool("mcp:echo-math:echo", {"text": "hello"}, ctx)
        assert (result.success, result.payload) == (True, "hello")


@pytest.mark.requirement("C2.2")
async def test_a_server_at_the_seeds_path_starts(tmp_path: Path, programs: str) -> None:
    agentos = tmp_path / ".agentos"
    shutil.copytree(SERVERS / "echo-math", agentos / "path" / "to" / "my-mcp-server")
    shutil.copy(SEEDS / "003-08-config.yaml", agentos / "mcp_servers.yaml")
    include = f'include = ["{agentos / "mcp_servers.yaml"}"]\n'
    async with running(tmp_path / "node", include, path=programs) as node:
        assert (await node.call("my-server:add", a=2, b=3)).text == "5"
