"""A home is begun on a Postgres server itself, and joined by other nodes."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.cli.conftest import Cli

from openfang.cli.errors import ERROR

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.requirement("C13.3")


@pytest.fixture
def bare(tmp_path: Path, empty_postgres: str) -> Callable[[str], Cli]:
    """Make the folder of a home that names a server, and nothing else."""

    def make(name: str) -> Cli:
        home = tmp_path / name / "home"
        home.mkdir(mode=0o700, parents=True)
        (home / "config.toml").write_text(f"[storage]\nurl = {json.dumps(empty_postgres)}\n")
        return Cli(home, tmp_path / "pycache")

    return make


def test_a_home_is_begun_on_an_empty_server_and_others_join_it(bare: Callable[[str], Cli]) -> None:
    first, second = bare("first"), bare("second")
    begun = first("init")
    assert (begun.code, "The home is made." in begun.out) == (0, True), begun.err
    assert "nothing was changed" in first("init").out
    assert first.call("memory_store", key="color", value="green").code == 0
    shutil.copy2(first.home / "master.key", second.home / "master.key")
    assert "The home is made." in second("init").out
    key = (first.home / "key").read_text().strip()
    recalled = second.call("memory_recall", env={"OPENFANG_API_KEY": key}, key="color")
    assert "green" in recalled.out
    assert len({(cli.home / "node").read_text() for cli in (first, second)}) == 2
    assert [key["name"][:5] for key in first("keys", "list", "--json").json] == ["admin", "admin"]
    verified = second("audit", "verify", "--json")
    assert (verified.code, verified.json["intact"]) == (0, True), verified.out
    assert not list(first.home.glob("*.db"))


def test_nobody_joins_without_the_master_key(bare: Callable[[str], Cli]) -> None:
    first, second = bare("first"), bare("second")
    assert first("init").code == 0
    refused = second("init")
    assert (refused.code, "master.key is missing" in refused.err) == (ERROR, True), refused.err
    assert "copy master.key" in refused.err
    assert not (second.home / "master.key").exists()


def test_nobody_joins_with_another_master_key(bare: Callable[[str], Cli]) -> None:
    first, second = bare("first"), bare("second")
    assert first("init").code == 0
    shutil.copy2(first.home / "key", second.home / "key")
    (second.home / "master.key").write_bytes(bytes(range(32)))
    (second.home / "master.key").chmod(0o600)
    for command in ("init", "start"):
        refused = second(command)
        assert (refused.code, "another master key" in refused.err) == (ERROR, True), refused.err
    found = {check["check"]: check for check in second("doctor", "--json").json}
    assert "another master key" in found["master key"]["text"]
    assert (second.home / "key").read_text() == (first.home / "key").read_text()
    assert len(first("keys", "list", "--json").json) == 1
    assert first("audit", "verify", "--json").json["intact"]


def test_a_home_in_a_file_is_not_left_behind_by_naming_a_server(
    make_home: Callable[[], Cli], empty_postgres: str
) -> None:
    home = make_home()
    home.configure(f"[storage]\nurl = {json.dumps(empty_postgres)}")
    refused = home("init")
    assert (refused.code, "storage migrate" in refused.err) == (ERROR, True), refused.err


def test_two_that_begin_at_once_make_one_home(bare: Callable[[str], Cli]) -> None:
    nodes = [bare(name) for name in ("first", "second")]
    first, second = nodes
    (first.home / "master.key").write_bytes(bytes(range(32)))
    (first.home / "master.key").chmod(0o600)
    shutil.copy2(first.home / "master.key", second.home / "master.key")
    with ThreadPoolExecutor(2) as both:
        made = [one.result() for one in [both.submit(cli, "init") for cli in nodes]]
    assert [one.code for one in made] == [0, 0], [one.err for one in made]
    assert all(cli.call("system_time").code == 0 for cli in nodes)
    assert len(first("keys", "list", "--json").json) == 2
