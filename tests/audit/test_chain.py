"""The seven kinds of tampering (C13.2), on a real log."""

from __future__ import annotations

import resource
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import orjson
import pytest
from anyio import to_thread
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from openfang.app.build import build
from openfang.app.home.new import init_home
from openfang.app.home.paths import Home
from openfang.app.lifespan import open_app
from openfang.app.verify import Verification, verify
from openfang.audit.chain import Checkpoint, Verifier, digest
from openfang.audit.notary import Notary, second_place
from openfang.core.events import AuditEvent, Record
from openfang.storage.log import all_rows
from openfang.storage.units import Head
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.app.parts import Parts

pytestmark = pytest.mark.requirement("C13.2", "C13.1")


@dataclass(frozen=True)
class Log:
    home: Home

    @property
    def path(self) -> Path:
        return self.home.path / "openfang.db"

    @property
    def checkpoints(self) -> Path:
        return self.home.path / "checkpoints" / "checkpoints.jsonl"

    def execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    def verify(self) -> Verification:
        async def look() -> Verification:
            parts = await build(self.home, {})
            try:
                return await verify(parts)
            finally:
                await parts.aclose()

        return anyio.run(look)

    def kinds(self) -> set[str]:
        return {finding.kind for finding in self.verify().findings}


async def fill(parts: Parts, count: int) -> None:
    for number in range(count):
        await parts.broker.append([Record(event="policy_decision", payload={"number": number})])


@pytest.fixture
def log(tmp_path: Path) -> Log:
    home, _ = init_home(tmp_path / "home", {})

    async def write() -> None:
        async with open_app(home, {}) as parts:
            await fill(parts, 19)

    anyio.run(write)
    return Log(home)


def test_an_untouched_log_is_intact(log: Log) -> None:
    verification = log.verify()
    assert verification.intact
    assert verification.records == 20
    assert verification.checkpoints > 0


def test_an_edited_record_is_found(log: Log) -> None:
    log.execute("UPDATE audit SET payload = '{\"number\":99}' WHERE seq = 7")
    assert log.kinds() == {"altered"}
    assert log.verify().findings[0].seq == 7


def test_a_deleted_record_is_found(log: Log) -> None:
    log.execute("DELETE FROM audit WHERE seq = 7")
    assert [(found.kind, found.seq) for found in log.verify().findings] == [("missing", 7)]


def test_a_gap_is_told_from_its_first_to_its_last_record(log: Log) -> None:
    log.execute("DELETE FROM audit WHERE seq BETWEEN 7 AND 9")
    (found,) = log.verify().findings
    assert (found.seq, found.text) == (7, "records 7 to 9 are missing")


def test_an_inserted_record_is_found(log: Log) -> None:
    log.execute(
        "UPDATE audit SET seq = -seq - 1 WHERE seq > 7",
        "UPDATE audit SET seq = -seq WHERE seq < 0",
        "INSERT INTO audit SELECT node, 8, at, event, level, call_id, task_id, payload, context, "
        "hash FROM audit WHERE seq = 7",
    )
    assert log.kinds() & {"altered", "rewritten"}


def test_two_swapped_records_are_found(log: Log) -> None:
    log.execute(
        "UPDATE audit SET seq = -7 WHERE seq = 7",
        "UPDATE audit SET seq = 7 WHERE seq = 8",
        "UPDATE audit SET seq = 8 WHERE seq = -7",
    )
    assert "altered" in log.kinds()


def test_a_changed_time_is_found(log: Log) -> None:
    log.execute("UPDATE audit SET at = at + 1 WHERE seq = 7")
    assert log.kinds() == {"altered"}


def test_a_cut_tail_is_found(log: Log) -> None:
    log.execute("DELETE FROM audit WHERE seq > 15", "DELETE FROM checkpoints")
    assert log.kinds() == {"cut"}


def test_a_whole_rewrite_is_found(log: Log) -> None:
    with closing(sqlite3.connect(log.path, isolation_level=None)) as database:
        before = bytes(32)
        for row in database.execute("SELECT * FROM audit ORDER BY seq").fetchall():
            line = (row[3], row[4], row[5], row[6], '{"number":0}', row[8])
            before = digest(row[0], row[1], row[2], line, before)
            database.execute(
                "UPDATE audit SET payload = ?, hash = ? WHERE seq = ?", (line[4], before, row[1])
            )
        database.execute("DELETE FROM checkpoints")
    assert log.kinds() == {"rewritten"}


def test_a_forged_checkpoint_is_found(log: Log) -> None:
    log.execute("UPDATE checkpoints SET hash = zeroblob(32)")
    assert log.kinds() == {"forged"}


def test_a_second_place_that_vanished_is_found(log: Log) -> None:
    log.checkpoints.unlink()
    assert log.kinds() == {"second_place"}


def test_a_torn_last_line_of_the_second_place_is_no_finding(log: Log) -> None:
    with log.checkpoints.open("ab") as file:
        file.write(b'{"node": "n", "seq":')
    assert log.verify().intact


def test_a_torn_line_of_the_second_place_does_not_spoil_the_next_one(log: Log) -> None:
    with log.checkpoints.open("ab") as file:
        file.write(b'{"node": "n", "seq":')

    async def go_on() -> None:
        async with open_app(log.home, {}) as parts:
            await fill(parts, 5)

    anyio.run(go_on)
    log.execute("DELETE FROM checkpoints", "DELETE FROM audit WHERE seq > 23")
    assert log.kinds() == {"cut"}


def test_a_log_that_goes_on_stays_intact(log: Log) -> None:
    async def go_on() -> None:
        async with open_app(log.home, {}) as parts:
            await fill(parts, 5)

    anyio.run(go_on)
    assert log.verify().records == 25
    assert log.verify().intact


@pytest.mark.parametrize(
    "tamper",
    [
        "hash = hex(hash)",
        "hash = 'no hash'",
        "at = 'yesterday'",
        "at = 1e300",
        "payload = 'no JSON'",
        "payload = '[1]'",
        "payload = x'ff'",
        "context = x'00'",
        "event = x'ff'",
        "payload = '{\"n\": 123456789012345678901234567890}'",
        'payload = \'{"n": "\\ud800"}\'',
        "payload = '" + '{"a":' * 300 + "1" + "}" * 300 + "'",
        "payload = '" + "[" * 100_000 + "'",
    ],
)
def test_a_column_of_another_type_is_found_and_shown_as_it_is(log: Log, tamper: str) -> None:
    log.execute(f"UPDATE audit SET {tamper} WHERE seq = 7")  # noqa: S608 - constants
    assert [(found.kind, found.seq) for found in log.verify().findings] == [("altered", 7)]
    (row,) = (row for row in all_rows(log.path) if row[1] == 7)
    shown = orjson.loads(orjson.dumps(AuditEvent.of(row).as_json()))
    assert shown["audit_id"] == 7


def test_what_cannot_be_read_is_shown_as_raw_text(log: Log) -> None:
    log.execute("UPDATE audit SET payload = 'no JSON', at = 'then', hash = 'none' WHERE seq = 7")
    (event,) = (AuditEvent.of(row) for row in all_rows(log.path) if row[1] == 7)
    assert (event.payload, event.created_at, event.hash) == ({"raw": "no JSON"}, "then", "none")


def test_a_node_of_another_type_is_found(log: Log) -> None:
    log.execute("UPDATE audit SET node = CAST(node AS BLOB) WHERE seq = 7")
    assert "altered" in log.kinds()


@pytest.mark.parametrize(
    "tamper", ["hash = hex(hash)", "signature = 'none'", "at = 'then'", "node = x'ff'", "seq = 'x'"]
)
def test_a_checkpoint_of_another_type_is_forged(log: Log, tamper: str) -> None:
    log.execute(f"UPDATE checkpoints SET {tamper} WHERE seq > 1")  # noqa: S608 - constants
    assert log.kinds() == {"forged"}


def test_a_line_of_another_type_in_the_second_place_is_forged(log: Log) -> None:
    body = orjson.loads(log.checkpoints.read_bytes().splitlines()[-1])
    lines = [{**body, "seq": str(body["seq"])}, {**body, "node": [1]}]
    with log.checkpoints.open("ab") as file:
        file.writelines(orjson.dumps(line) + b"\n" for line in lines)
    assert [found.kind for found in log.verify().findings] == ["forged", "forged"]


async def test_checkpoints_that_are_gone_from_both_places_are_missed(tmp_path: Path) -> None:
    async with open_test_app(tmp_path / "home") as app:
        await app.call("system_time")
        running = await verify(app.parts)
    assert running.intact
    assert running.checkpoints == 2  # the first record's, in both places
    log = Log(Home(tmp_path / "home"))
    assert await to_thread.run_sync(log.kinds) == set()
    await to_thread.run_sync(log.execute, "DELETE FROM checkpoints")
    await to_thread.run_sync(log.checkpoints.unlink)
    assert await to_thread.run_sync(log.kinds) == {"no_checkpoint"}


def test_of_two_checkpoints_that_contradict_one_is_a_lie() -> None:
    point = Checkpoint(node="n", seq=3, at=1, hash=bytes(32), signer="s")
    assert Verifier([point, replace(point, at=2)]).findings == []
    (found,) = Verifier([point, replace(point, hash=b"x" * 32)]).findings
    assert (found.kind, found.node, found.seq) == ("rewritten", "n", 3)


def test_a_checkpoint_that_was_only_half_written_is_no_success(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.jsonl"
    notary = Notary(node="n", key=Ed25519PrivateKey.generate(), file=file)
    first = notary.sign(Head(1, bytes(32)), 1)
    assert len(first.signer) == 16
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, hard))
    try:
        with pytest.raises(OSError, match="No space left"):
            notary.sign(Head(2, bytes(32)), 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    last = notary.sign(Head(3, bytes(32)), 3)
    assert [*second_place(file)] == [first, last]


def test_the_second_place_is_the_owners_alone_and_has_a_line_for_each(tmp_path: Path) -> None:
    file = tmp_path / "away" / "from" / "home.jsonl"
    notary = Notary(node="n", key=Ed25519PrivateKey.generate(), file=file)
    signed = [notary.sign(Head(1, bytes(32)), 1)]
    opened = len([*Path("/proc/self/fd").iterdir()])
    signed += [notary.sign(Head(seq, bytes(32)), seq) for seq in (2, 3)]
    assert len([*Path("/proc/self/fd").iterdir()]) == opened
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file.parent, file)] == [0o700, 0o600]
    assert len(file.read_bytes().split(b"\n")) == 3 + 1
    assert [*second_place(file)] == signed


def test_every_field_of_a_checkpoint_is_signed() -> None:
    point = Checkpoint(node="n", seq=3, at=1, hash=bytes(32), signer="s")
    others = [
        replace(point, node="m"),
        replace(point, seq=4),
        replace(point, at=2),
        replace(point, hash=b"x" * 32),
        replace(point, signer="t"),
        replace(point, node="n3", seq=0),
    ]
    assert len({one.message for one in (point, *others)}) == len(others) + 1
    assert replace(point, signature=b"x").message == point.message


words = st.text(max_size=20)


@given(st.lists(words, min_size=6, max_size=6), st.lists(words, min_size=6, max_size=6))
def test_two_different_records_never_share_an_encoding(one: list[str], two: list[str]) -> None:
    first: Callable[[list[str]], bytes] = lambda line: digest("n", 1, 1, line, bytes(32))  # noqa: E731
    assert (first(one) == first(two)) == (one == two)


@pytest.mark.requirement("C13.4")
def test_the_log_survives_the_deletion_of_what_it_speaks_about(log: Log) -> None:
    log.execute("DELETE FROM keys", "DELETE FROM specs", "DELETE FROM approvals")
    verification = log.verify()
    assert verification.records == 20
    assert verification.intact
