"""The seeds' own examples of configuration, put in place unchanged and checked by the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.requirement("C2.7", "C2.8", "C2.2")

SEEDS = Path(__file__).parents[1] / "data" / "seeds"
TOML = sorted(SEEDS.glob("*-config.toml"))
YAML = sorted(SEEDS.glob("*-config.yaml"))


@pytest.fixture(scope="module")
def home(make_home: Callable[[], Cli]) -> Cli:
    return make_home()


@pytest.mark.parametrize("example", TOML, ids=[path.name for path in TOML])
def test_a_whole_example_passes_the_check(home: Cli, example: Path) -> None:
    (home.home / "config.toml").write_bytes(example.read_bytes())
    checked = home("config", "check")
    assert checked.code == 0, checked.out


@pytest.mark.parametrize("example", YAML, ids=[path.name for path in YAML])
def test_a_file_of_agentos_passes_where_it_lies(home: Cli, example: Path) -> None:
    place = home.home.parent / ".agentos" / "mcp_servers.yaml"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(example.read_bytes())
    (home.home / "config.toml").write_text('include = ["~/.agentos/mcp_servers.yaml"]\n')
    assert home("config", "check").code == 0
    names = [one["name"] for one in home("config", "show", "--json").json["mcp_servers"]]
    assert names


def test_a_mistake_in_an_example_would_be_seen(home: Cli) -> None:
    (home.home / "config.toml").write_text(TOML[0].read_text() + '\nno_such_key = "x"\n')
    checked = home("config", "check")
    assert (checked.code, "no_such_key" in checked.out) == (1, True)


@pytest.mark.requirement("C2.6")
def test_an_included_file_may_lie_above_the_home(home: Cli) -> None:
    """Its paths count from its folder, by whatever way that was named."""
    folder = home.home.parent / "team"
    (folder / "servers").mkdir(parents=True)
    (folder / "servers" / "a.py").touch()
    entry = 'mcp_servers:\n  - id: a\n    command: [python3, "servers/a.py"]\n'
    (folder / "mcp_servers.yaml").write_text(entry)
    (home.home / "config.toml").write_text('include = ["../team/mcp_servers.yaml"]\n')
    assert home("config", "check").code == 0
    (server,) = home("config", "show", "--json").json["mcp_servers"]
    assert server["transport"]["args"] == [str(folder / "servers" / "a.py")]
