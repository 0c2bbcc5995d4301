"""An export proves itself (C13.2): the seven kinds of tampering, with a public key and no home."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openfang.app.build import build
from openfang.app.home.new import init_home
from openfang.app.home.paths import Home
from openfang.app.lifespan import open_app
from openfang.app.verify import opened, prove, verify
from openfang.audit.chain import digest
from openfang.audit.export import row_body, verify_lines
from openfang.audit.notary import read_checkpoint
from openfang.core.events import Record
from openfang.host.secrets import MasterKey
from openfang.storage.log import all_rows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from openfang.app.parts import Parts
    from openfang.core.log import Proof, Verification

pytestmark = pytest.mark.requirement("C13.2")

T = TypeVar("T")
RECORDS = 30
Lines: TypeAlias = "list[dict[str, Any]]"


@dataclass(frozen=True)
class Kept:
    """A home with some records, and the public key of its node."""

    home: Home
    key: Ed25519PublicKey

    def export(self, after: int = 0) -> Lines:
        begun = self._looked(lambda parts: opened(parts, after, at=1))
        found = all_rows(self.home.path / "openfang.db")
        records = [row_body(row) for row in found if row[1] > after and begun.covers(row)]
        return [*map(dict, begun.lines), *map(dict, records)]

    def verify(self) -> Verification:
        return self._looked(verify)

    def prove(self, seq: int, last: str) -> Proof:
        return self._looked(lambda parts: prove(parts, seq, last))

    def _looked(self, look: Callable[[Parts], Awaitable[T]]) -> T:
        async def run() -> T:
            parts = await build(self.home, {})
            try:
                return await look(parts)
            finally:
                await parts.aclose()

        return anyio.run(run)

    def execute(self, *statements: str, **values: int) -> None:
        path = self.home.path / "openfang.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement, values)

    def copied(self, to: Path) -> Kept:
        shutil.copytree(self.home.path, to)
        return replace(self, home=Home(to))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    home, _ = init_home(tmp_path_factory.mktemp("kept") / "home", {})

    async def write() -> None:
        for _ in range(3):  # three processes, so that there are checkpoints in the middle
            async with open_app(home, {}) as parts:
                for number in range(RECORDS // 3):
                    record = Record(event="policy_decision", payload={"number": number, "é": "|="})
                    await parts.broker.append([record])

    anyio.run(write)
    key = MasterKey.open(home.path, keyring=False).signing_key().public_key()
    return Kept(home, key)


@pytest.fixture
def kept(untouched: Kept, tmp_path: Path) -> Kept:
    return untouched.copied(tmp_path / "home")


def kinds(lines: Sequence[dict[str, Any]], key: Ed25519PublicKey) -> set[str]:
    found = verify_lines((orjson.dumps(line) for line in lines), key)
    return {finding.kind for finding in found.findings}


def at(lines: Lines, seq: int) -> int:
    return next(place for place, line in enumerate(lines) if line.get("record") == seq)


def edit(lines: Lines) -> None:
    lines[at(lines, 7)]["payload"] = '{"number":99}'


def delete(lines: Lines) -> None:
    del lines[at(lines, 7)]


def insert(lines: Lines) -> None:
    place = at(lines, 7)
    lines.insert(place, {**lines[place]})


def swap(lines: Lines) -> None:
    one, other = at(lines, 7), at(lines, 8)
    lines[one], lines[other] = lines[other], lines[one]


def change_time(lines: Lines) -> None:
    lines[at(lines, 7)]["at"] += 1


def cut(lines: Lines) -> None:
    """Cut the tail, and every checkpoint that has seen it."""
    lines[:] = [line for line in lines if line.get("record", 0) <= 15]
    lines[:] = [line for line in lines if line.get("checkpoint", {}).get("seq", 0) <= 15]


def rewrite(lines: Lines) -> None:
    """Write every record and every hash anew, as somebody can who has not the node's key."""
    rechain(lines, lambda line: {**line, "payload": "{}"})


def rechain(lines: Lines, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    before = bytes(32)
    for place, line in enumerate(lines):
        if "record" in line:
            made = lines[place] = change(line)
            columns = ("event", "level", "call_id", "task_id", "payload", "context")
            texts = [made[name] for name in columns]
            before = digest(made["node"], made["record"], made["at"], texts, before)
            made["hash"] = before.hex()


TAMPERINGS = {
    "edit": (edit, {"altered"}),
    "delete": (delete, {"missing"}),
    "insert": (insert, {"missing", "altered"}),
    "swap": (swap, {"missing", "altered"}),
    "change_time": (change_time, {"altered"}),
    "cut": (cut, {"cut"}),
    "rewrite": (rewrite, {"rewritten"}),
}


@pytest.mark.requirement("C13.1")
def test_an_untouched_export_is_intact(untouched: Kept) -> None:
    lines = untouched.export()
    found = verify_lines((orjson.dumps(line) for line in lines), untouched.key)
    assert found.intact
    assert (found.records, found.checkpoints) == (RECORDS + 1, 4)
    assert found.key == untouched.key.public_bytes_raw().hex()


@pytest.mark.parametrize("name", TAMPERINGS)
def test_each_kind_of_tampering_with_an_export_is_found(untouched: Kept, name: str) -> None:
    tamper, expected = TAMPERINGS[name]
    lines = untouched.export()
    tamper(lines)
    found = kinds(lines, untouched.key)
    assert found
    assert found <= expected


_INSERTED = (
    "UPDATE audit SET seq = -seq - 1 WHERE seq > 7",
    "UPDATE audit SET seq = -seq WHERE seq < 0",
    "CREATE TEMP TABLE one AS SELECT * FROM audit WHERE seq = 7",
    "UPDATE one SET seq = 8",
    "INSERT INTO audit SELECT * FROM one",
)
_SWAPPED = (
    "UPDATE audit SET seq = -7 WHERE seq = 7",
    "UPDATE audit SET seq = 7 WHERE seq = 8",
    "UPDATE audit SET seq = 8 WHERE seq = -7",
)


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE audit SET payload = '{}' WHERE seq = 7",),
        ("DELETE FROM audit WHERE seq = 7",),
        _INSERTED,
        _SWAPPED,
        ("UPDATE audit SET at = at + 1 WHERE seq = 7",),
        ("DELETE FROM audit WHERE seq > 15", "DELETE FROM checkpoints"),
    ],
    ids=["edit", "delete", "insert", "swap", "change_time", "cut"],
)
def test_what_was_done_to_the_database_shows_in_its_export(
    kept: Kept, statements: tuple[str, ...]
) -> None:
    kept.execute(*statements)
    assert not kept.verify().intact
    assert kinds(kept.export(), kept.key)


def test_a_database_that_was_rewritten_whole_shows_in_its_export(kept: Kept) -> None:
    path = kept.home.path / "openfang.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        before = bytes(32)
        for row in database.execute("SELECT * FROM audit ORDER BY seq").fetchall():
            before = digest(row[0], row[1], row[2], (*row[3:7], "{}", row[8]), before)
            database.execute(
                "UPDATE audit SET payload = '{}', hash = ? WHERE seq = ?", (before, row[1])
            )
        database.execute("DELETE FROM checkpoints")
    assert kinds(kept.export(), kept.key) == {"rewritten"}
    assert not kept.verify().intact


_FIELDS = ("node", "at", "event", "level", "call_id", "task_id", "payload", "context", "hash")


@st.composite
def changes(draw: st.DrawFn) -> Callable[[Lines], None]:
    """Any change to the lines of the records, of any of the seven kinds, with or without rehash."""
    one, other = (draw(st.integers(1, RECORDS + 1)) for _ in range(2))
    kind = draw(st.sampled_from(["edit", "delete", "insert", "swap", "cut", "rewrite", "number"]))
    field = draw(st.sampled_from(_FIELDS))
    text = draw(st.text(max_size=8))
    if kind == "rewrite" and field == "hash":
        field = "payload"  # whoever writes the hashes anew has changed something else

    def edited(line: dict[str, Any]) -> dict[str, Any]:
        value = line[field]
        return {**line, field: value + 1 if isinstance(value, int) else f"{value}{text}x"}

    def change(lines: Lines) -> None:
        place, place2 = at(lines, one), at(lines, other)
        match kind:
            case "edit":
                lines[place] = edited(lines[place])
            case "delete":
                del lines[place]
            case "insert":
                lines.insert(place2, {**lines[place]})
            case "swap":
                second = place2 if place2 != place else at(lines, one % (RECORDS + 1) + 1)
                lines[place], lines[second] = lines[second], lines[place]
            case "cut":
                del lines[place:]
            case "number":
                lines[place]["record"] += 1
            case _:
                rechain(lines, lambda line: edited(line) if line["record"] == one else line)

    return change


@given(changes())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_random_change_to_an_export_goes_unnoticed(
    untouched: Kept, change: Callable[[Lines], None]
) -> None:
    before = untouched.export()
    lines = [dict(line) for line in before]
    change(lines)
    assert lines != before
    assert kinds(lines, untouched.key)


_ANY = (
    ("UPDATE audit SET context = context || :amount WHERE seq = :seq",),
    ("DELETE FROM audit WHERE seq = :seq",),
    ("UPDATE audit SET seq = seq + :amount + 100 WHERE seq = :seq",),
    (
        "UPDATE audit SET seq = -1 WHERE seq = :seq",
        "UPDATE audit SET seq = :seq WHERE seq = :before",
        "UPDATE audit SET seq = :before WHERE seq = -1",
    ),
    ("UPDATE audit SET at = at - :amount WHERE seq = :seq",),
    ("DELETE FROM audit WHERE seq >= :seq",),
    ("UPDATE audit SET hash = randomblob(32) WHERE seq = :seq",),
)


@given(st.integers(2, RECORDS), st.integers(0, 6), st.integers(1, 10**9))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_random_change_to_the_database_goes_unnoticed(
    untouched: Kept, tmp_path_factory: pytest.TempPathFactory, seq: int, kind: int, amount: int
) -> None:
    kept = untouched.copied(tmp_path_factory.mktemp("changed") / "home")
    kept.execute(*_ANY[kind], seq=seq, before=seq - 1, amount=amount)
    assert not kept.verify().intact
    assert kinds(kept.export(), kept.key)


def test_an_export_of_the_newest_records_is_checked_from_where_it_begins(untouched: Kept) -> None:
    lines = untouched.export(after=20)
    found = verify_lines((orjson.dumps(line) for line in lines), untouched.key)
    assert (found.intact, found.records) == (True, RECORDS + 1 - 20)
    lines[at(lines, 25)]["payload"] = "{}"
    assert kinds(lines, untouched.key) == {"altered"}


def test_an_export_that_begins_elsewhere_than_was_signed_is_found(untouched: Kept) -> None:
    lines = untouched.export(after=20)
    del lines[at(lines, 21)]
    assert "missing" in kinds(lines, untouched.key)


def test_nothing_behind_the_last_record_goes_unnoticed(untouched: Kept) -> None:
    lines = untouched.export()
    last = dict(lines[-1])
    last["record"] += 1
    texts = [last[name] for name in _FIELDS[2:8]]
    before = bytes.fromhex(lines[-1]["hash"])
    last["hash"] = digest(last["node"], last["record"], last["at"], texts, before).hex()
    assert kinds([*lines, last], untouched.key) == {"added"}


def test_an_export_without_its_head_or_with_that_of_another_node_is_forged(untouched: Kept) -> None:
    lines = untouched.export()
    assert "forged" in kinds(lines[1:], untouched.key)
    assert "forged" in kinds(lines, Ed25519PrivateKey.generate().public_key())
    lines[0]["nodes"][0]["end"]["record"] = 15
    cut(lines)
    assert "forged" in kinds(lines, untouched.key)


def test_an_older_export_is_found_out_by_a_checkpoint_that_was_kept_elsewhere(kept: Kept) -> None:
    anchored = [line["checkpoint"] for line in kept.export() if "checkpoint" in line]
    kept.execute("DELETE FROM audit WHERE seq > 15", "DELETE FROM checkpoints WHERE seq > 15")
    (kept.home.path / "checkpoints" / "checkpoints.jsonl").unlink()
    lines = [orjson.dumps(line) for line in kept.export()]
    assert verify_lines(lines, kept.key).intact
    found = verify_lines(lines, kept.key, [read_checkpoint(point) for point in anchored])
    assert {finding.kind for finding in found.findings} == {"cut"}


_NAMES = ("record", "checkpoint", "openfang_audit", "nodes", "at", "hash", "signature")
_SCALARS = st.none() | st.integers(-5, 5) | st.text(max_size=3)
_BODIES = st.dictionaries(st.sampled_from(_NAMES), _SCALARS | st.lists(_SCALARS, max_size=2))


@given(st.lists(st.binary(max_size=60) | st.builds(orjson.dumps, _BODIES), max_size=6))
def test_whatever_the_lines_hold_is_a_finding_and_no_crash(lines: list[bytes]) -> None:
    found = verify_lines(lines, Ed25519PrivateKey.generate().public_key())
    assert not found.intact


@pytest.mark.requirement("C13.6")
def test_a_receipt_is_proven_as_long_as_the_log_is_what_was_written(kept: Kept) -> None:
    lines = kept.export()
    of_seven = lines[at(lines, 7)]["hash"]
    assert kept.prove(7, of_seven).proven
    assert kept.prove(7, of_seven).signed == RECORDS // 3 + 1
    assert not kept.prove(8, of_seven).proven
    assert not kept.prove(7, "ab" * 32).proven
    kept.execute("UPDATE audit SET payload = '{}' WHERE seq = 7")
    assert not kept.prove(7, of_seven).proven


@pytest.mark.requirement("C13.6")
def test_a_record_that_no_checkpoint_has_seen_yet_is_proven_by_the_chain(kept: Kept) -> None:
    kept.execute("DELETE FROM checkpoints")
    (kept.home.path / "checkpoints" / "checkpoints.jsonl").unlink()
    lines = kept.export()
    found = kept.prove(7, lines[at(lines, 7)]["hash"])
    assert (found.proven, found.signed) == (True, None)
