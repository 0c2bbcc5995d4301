"""What is shown live of the log: a few fields of each record, and nothing of other callers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from openfang.core.bookmarks import Bookmark
from openfang.storage.database import looked, open_home
from openfang.storage.recent import recent

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

pytestmark = pytest.mark.requirement("C12.1", "C18.1")
_INSERT = "INSERT INTO audit VALUES ('n', ?, 0, 'node_thing', 'info', '', '', ?, ?, x'00')"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    open_home(path).close()
    return path


def put(path: Path, seq: int, payload: str | bytes, context: str | bytes) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(_INSERT, (seq, payload, context))


def read(path: Path, after: int, limit: int, **narrowed: Any) -> tuple[list[Any], int]:
    found = looked(path, lambda reader: recent(reader, Bookmark(rest=after), limit, **narrowed))
    return list(found.records), int(str(found.end))


def of(caller: str) -> str:
    return f'{{"caller":"{caller}","process":"p1"}}'


def test_the_arguments_of_a_call_stay_where_they_are(log: Path) -> None:
    put(log, 1, '{"arguments":{"text":"mine"},"labels":["a"],"rule":null}', of("key:a"))
    (record,), end = read(log, 0, 10)
    assert end == 1
    assert record == {
        "audit_id": 1,
        "node": "n",
        "event_type": "node_thing",
        "level": "info",
        "created_at": record["created_at"],
        "call_id": "",
        "task_id": "",
        "caller": "key:a",
        "labels": ["a"],
    }


def test_of_other_callers_only_the_numbers_are_passed(log: Path) -> None:
    for seq in range(1, 8):
        put(log, seq, '{"reason":"x"}', of("key:a" if seq in {2, 7} else "key:b"))
    shown, end = read(log, 0, 5, caller="key:a")
    assert ([one["audit_id"] for one in shown], end) == ([2], 5)
    shown, end = read(log, 5, 5, caller="key:a")
    assert ([one["audit_id"] for one in shown], end) == ([7], 7)
    assert read(log, 7, 5) == ([], 7)


def test_long_ones_come_in_smaller_parts(log: Path) -> None:
    for seq in (1, 2, 3):
        put(log, seq, f'{{"reason":"{"x" * 600_000}"}}', of("key:a"))
    shown, end = read(log, 0, 10)
    assert ([one["audit_id"] for one in shown], end) == ([1, 2], 2)


@pytest.mark.parametrize("odd", ["no json", b"\xff\x00", "[1]", '"x"', '{"caller":"\\ud800"}', ""])
def test_what_cannot_be_read_keeps_nothing_else_back(log: Path, odd: str | bytes) -> None:
    put(log, 1, odd, odd)
    put(log, 2, '{"reason":"x"}', of("key:a"))
    shown, _ = read(log, 0, 10)
    assert [one["audit_id"] for one in shown] == [1, 2]
    shown, _ = read(log, 0, 10, caller="key:a")
    assert [one["audit_id"] for one in shown] == [2]
