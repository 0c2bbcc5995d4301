"""The servers of the seeds' examples that need no network, in the sandbox of a daemon."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tests.contract.house import house
from tests.faults.daemon import make_home
from tests.peers.servers import install, runners
from tests.peers.test_examples import FILESYSTEM, SEEDS, SERVERS, example

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.needs("bwrap")
@pytest.mark.requirement("C16.3", "C16.4", "C2.2")
def test_each_starts_sandboxed_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the folder and the path to the second one, which are some that this machine has."""
    monkeypatch.setenv("PATH", runners(tmp_path / "prefix"))
    projects, agentos = tmp_path / "projects", tmp_path / ".agentos"
    projects.mkdir()
    (projects / "plan.md").write_text("figs\n")
    shutil.copytree(SERVERS, agentos / "servers")
    shutil.copytree(SERVERS / "echo-math", agentos / "path" / "to" / "my-mcp-server")
    shutil.copy(SEEDS / "003-07-config.yaml", agentos / "mcp_servers.yaml")
    shutil.copy(SEEDS / "003-08-config.yaml", agentos / "mine.yaml")
    install(make_home(tmp_path / "home").path / "servers" / "filesystem" / "home")
    include = f'include = ["{agentos}/mcp_servers.yaml", "{agentos}/mine.yaml"]\n'
    with house(tmp_path, include, example(FILESYSTEM[0], projects), again=True) as node:
        node.connected("filesystem", "echo-math", "my-server")
        listed = node.call("mcp:filesystem:list_directory", {"path": str(projects)}).json
        assert listed["content"][0]["text"] == "[FILE] plan.md"
        for name in ("echo-math", "my-server"):
            said = node.call(f"mcp:{name}:echo", {"text": "hello"}).json
            assert said["content"][0]["text"] == "hello"
            layers = node.ask("GET", f"/api/mcp/servers/{name}").json["layers"]
            assert all(layer["active"] for layer in layers[:5])
