"""What is too large of a message is kept beside the call, and makes room for itself once."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from anyio import to_thread
from tests.app.a2a.pushing import says

from openfang.agents.attached import BLOB
from openfang.app.a2a.parcels import pack
from openfang.core.labels import Labels
from openfang.core.results import text_part
from openfang.core.tasks import Role, TaskMessage
from openfang.pipeline.shape import Shaper
from openfang.safety.redact import Redactor
from openfang.storage.database import open_home
from openfang.storage.state import put_blob

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.app.a2a.parcels import Parcel
    from openfang.storage.database import Database

pytestmark = pytest.mark.requirement("C7.5")
ME, NOW, LARGE = "key:me", 1_000, "x" * 20_000


def shaper(most: int) -> Shaper:
    return Shaper(redactor=Redactor(bytes(32)), now=lambda: NOW, max_kept_bytes=most)


def packed(count: int, by: Shaper) -> Parcel:
    parts = tuple({"type": "data", "data": LARGE} for _ in range(count))
    message = TaskMessage(id="m", role=Role.USER, parts=(text_part("go"), *parts))
    return pack(message, {}, ME, NOW, by.room)


def drops(parcel: Parcel) -> int:
    return sum(sql.startswith("DELETE") for sql, _ in parcel.statements)


def blobs(parcel: Parcel) -> set[str]:
    return {part[BLOB] for part in parcel.arguments["parts"] if BLOB in part}


def kept(database: Database, caller: str) -> dict[str, int]:
    sql = "SELECT id, LENGTH(body) FROM blobs WHERE caller = ?"
    return dict(database.read_now(sql, (caller,)))


def test_room_is_made_once_for_all_of_a_message_and_then_when_a_share_is_used_up() -> None:
    by = shaper(most=16 * 100 * 20_002)
    assert [drops(packed(60, by)) for _ in range(4)] == [1, 0, 1, 0]
    assert pack(says("small"), {}, ME, NOW, by.room).statements == ()


async def test_the_oldest_of_a_caller_goes_first_and_nothing_of_the_message_itself(
    tmp_path: Path,
) -> None:
    database = await to_thread.run_sync(open_home, tmp_path / "openfang.db")
    by, most = shaper(most=1_000_000), 1_000_000
    with closing(database):
        for n in range(40):
            blob = f"result_{n:032x}"
            for caller in (ME, "key:other"):
                sql, parameters = put_blob(blob + caller[4:], caller, bytes(20_000), Labels(0), NOW)
                database.connection.execute(sql, parameters)
        for _ in range(10):
            parcel = packed(3, by)
            for sql, parameters in parcel.statements:
                database.connection.execute(sql, parameters)
            found = kept(database, ME)
            assert len(blobs(parcel) & found.keys()) == 3
            assert sum(found.values()) <= most
        found = kept(database, ME)
        assert f"result_{0:032x}me" not in found
        assert f"result_{39:032x}me" in found
        assert len(kept(database, "key:other")) == 40
