from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from openfang.app.home.editing import Editing
from openfang.config.edit import switched, with_server
from openfang.core.errors import ConfigError, Conflict, HomeError

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.config.show import Plain

pytestmark = pytest.mark.requirement("C2.1", "C2.6", "C2.9")
TEXT = '# mine\n[[mcp_servers]]\nname = "a"\ntransport = { type = "stdio", command = "x" }\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    return file


def off(text: str) -> str:
    return switched(text, "a", enabled=False)


def test_a_change_is_written_whole_and_what_was_there_is_kept(file: Path) -> None:
    file.chmod(0o640)
    editing = Editing(file.parent, {})
    change = editing.prepare(file, off)
    assert not change.config.mcp_servers[0].enabled
    assert file.read_text() == TEXT
    editing.commit(change)
    assert file.read_text() == off(TEXT)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.with_name("config.toml.bak").read_text() == TEXT
    assert sorted(path.name for path in file.parent.iterdir()) == ["config.toml", "config.toml.bak"]


def test_what_a_start_would_refuse_is_never_written(file: Path) -> None:
    editing = Editing(file.parent, {})
    entry: dict[str, Plain] = {"name": "b", "transport": {"type": "stdio", "command": "../x"}}
    with pytest.raises(ConfigError, match=r"config\.toml:\d+: mcp_servers\.b\.transport\.command"):
        editing.prepare(file, lambda text: with_server(text, entry))
    twice: dict[str, Plain] = {"name": "a", "transport": {"type": "stdio", "command": "y"}}
    with pytest.raises(ConfigError, match="one entry of this name"):
        editing.prepare(file, lambda text: with_server(text, twice))
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_who_wrote_meanwhile_is_not_overwritten(file: Path) -> None:
    editing = Editing(file.parent, {})
    change = editing.prepare(file, off)
    file.write_text(TEXT + "# by hand\n")
    with pytest.raises(Conflict, match="meanwhile"):
        editing.commit(change)
    assert file.read_text() == TEXT + "# by hand\n"


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "openfang.toml"
    real.parent.mkdir()
    file.rename(real)
    file.symlink_to(real)
    editing = Editing(tmp_path, {})
    editing.commit(editing.prepare(file, off))
    assert file.is_symlink()
    assert real.read_text() == off(TEXT)


def test_a_home_without_a_file_gets_one(tmp_path: Path) -> None:
    editing, file = Editing(tmp_path, {}), tmp_path / "config.toml"
    entry: dict[str, Plain] = {"name": "b", "transport": {"type": "stdio", "command": "x"}}
    editing.commit(editing.prepare(file, lambda text: with_server(text, entry)))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_a_file_that_cannot_be_read_is_told(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(HomeError, match="cannot be read"):
        Editing(file.parent, {}).prepare(file, off)
