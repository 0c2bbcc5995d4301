"""A home whose key file or database was lost is mended by making it again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import anyio
import pytest

from openfang.app.auth.identify import identify
from openfang.app.build import build
from openfang.app.environment import credential
from openfang.app.home.new import Made, init_home
from openfang.core.errors import HomeError, Unauthenticated

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.app.home.paths import Home
    from openfang.core.calls import Caller

pytestmark = pytest.mark.requirement("C18.1")


def who(home: Home) -> Caller:
    async def look() -> Caller:
        parts = await build(home, {})
        try:
            return await identify(parts, credential(home, {}), "cli")
        finally:
            await parts.aclose()

    return anyio.run(look)


@pytest.fixture
def made(tmp_path: Path) -> Home:
    return init_home(tmp_path / "home", {})[0]


def test_a_second_time_nothing_changes(made: Home) -> None:
    key = made.key_file.read_text()
    assert init_home(made.path, {}) == (made, Made.NOTHING)
    assert made.key_file.read_text() == key
    assert not made.old_key_file.exists()
    assert who(made).admin


@pytest.mark.parametrize("content", [b"", b"\n", b"of_unknown\n", b"\xff\xfe"])
def test_a_key_file_that_opens_nothing_is_kept_aside_and_replaced(
    made: Home, content: bytes
) -> None:
    made.key_file.write_bytes(content)
    with pytest.raises(Unauthenticated, match="not known"):
        who(made)
    assert init_home(made.path, {}) == (made, Made.KEY)
    assert made.old_key_file.read_bytes() == content
    assert made.key_file.stat().st_mode & 0o777 == 0o600
    assert who(made).admin
    assert not list(made.path.glob(".key.*"))


def test_a_damaged_database_that_was_moved_away_is_made_again(made: Home) -> None:
    database, key = made.path / "openfang.db", made.key_file.read_text()
    database.write_bytes(b"this is no database" * 500)
    with pytest.raises(HomeError) as damaged:
        init_home(made.path, {})
    assert "move the file away and run: openfang init" in damaged.value.way_out
    database.rename(made.path / "damaged.db")
    assert init_home(made.path, {}) == (made, Made.KEY)
    assert made.old_key_file.read_text() == key
    assert who(made).admin


@pytest.mark.parametrize("ended", ["revoked_at", "expires_at"])
def test_a_key_that_is_no_longer_in_force_is_replaced(made: Home, ended: str) -> None:
    key = made.key_file.read_text()
    with closing(sqlite3.connect(made.path / "openfang.db")) as database:
        database.execute(f"UPDATE keys SET {ended} = 1")  # noqa: S608 - constants
        database.commit()
    assert init_home(made.path, {}) == (made, Made.KEY)
    assert made.old_key_file.read_text() == key
    assert who(made).admin
