"""The hash chain, its signed checkpoints, and the check of both. No I/O.

A record's hash is SHA-256 over the hash before it and a length-prefixed form of its fields, so that
no two different records share an encoding. The chain alone shows edits, gaps, insertions, swaps and
changed times; a cut tail and a whole rewrite show against checkpoints that were signed with the
node's key and kept in a second place.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from openfang.core.log import Finding
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openfang.storage.units import Head

GENESIS = bytes(32)


def digest(node: str, seq: int, at: int, line: Iterable[str], before: bytes) -> bytes:
    """Hash one record, chained to the one before it."""
    event, level, call_id, task_id, payload, context = line
    text = (
        f"1;{len(node)}:{node}{seq};{at};{len(event)}:{event}{len(level)}:{level}"
        f"{len(call_id)}:{call_id}{len(task_id)}:{task_id}"
        f"{len(payload)}:{payload}{len(context)}:{context}"
    )
    return sha256(before + text.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The node's word that its chain had this head at this time."""

    node: str
    seq: int
    at: int
    hash: bytes
    signer: str
    signature: bytes = b""

    @property
    def well_formed(self) -> bool:
        """Whether every field is of its type; what was read from elsewhere may be anything."""
        return (
            _are(str, self.node, self.signer)
            and _are(int, self.seq, self.at)
            and _are(bytes, self.hash, self.signature)
        )

    @property
    def message(self) -> bytes:
        """What is signed."""
        text = f"openfang checkpoint 1;{len(self.node)}:{self.node}{self.seq};{self.at};"
        return f"{text}{self.hash.hex()};{self.signer}".encode()


class Row(NamedTuple):
    """A record as it is stored."""

    node: str
    seq: int
    at: int
    line: tuple[str, str, str, str, str, str]
    hash: bytes

    @property
    def well_formed(self) -> bool:
        """Whether every column is of its type: SQLite stores anything anywhere."""
        return (
            _are(str, self.node, *self.line)
            and _are(int, self.seq, self.at)
            and _are(bytes, self.hash)
        )


def _are(kind: type, *values: object) -> bool:
    return all(type(value) is kind for value in values)


@dataclass(slots=True)
class _Walk:
    """The chain of one node, as far as it has been read."""

    seq: int = 0
    hash: bytes = GENESIS


class Verifier:
    """Reads records in order, once, and says what does not fit.

    `starts` is where to go on from in the chain of each node, unless that is read from its first.
    """

    def __init__(
        self, checkpoints: Iterable[Checkpoint], starts: Mapping[str, Head] | None = None
    ) -> None:
        self.records = 0
        self.findings: list[Finding] = []
        self._walks = {node: _Walk(*start) for node, start in (starts or {}).items()}
        self._expected: dict[tuple[str, int], Checkpoint] = {}
        for point in checkpoints:
            known = self._expected.setdefault((point.node, point.seq), point)
            if known.hash != point.hash:
                self._found("rewritten", point.node, point.seq, "two checkpoints contradict")

    def read(self, row: Row) -> None:
        """Take the next record of its node."""
        node, seq, at, line, stored = row
        walk = self._walks.get(node)
        if walk is None:
            walk = self._walks[str(node)] = _Walk()
        self.records += 1
        made = digest(node, seq, at, line, walk.hash)
        if made != stored or seq != walk.seq + 1 or type(at) is not int:
            self._judge(row, walk, made)
        # A hash that is none cannot be gone on from: take what it should have been.
        walk.seq, walk.hash = seq, stored if type(stored) is bytes else made
        if (node, seq) in self._expected and self._expected.pop((node, seq)).hash != stored:
            text = "the record is not the one that the signed checkpoint saw"
            self._found("rewritten", node, seq, text)

    def _judge(self, row: Row, walk: _Walk, made: bytes) -> None:
        """Say what is wrong with a record that does not fit."""
        if row.seq != walk.seq + 1:
            self._gap(row, walk)
        elif made != row.hash and row.well_formed:
            self._found("altered", row.node, row.seq, "the record does not match its hash")
        if not row.well_formed:
            text = "a column is not of the type that was written"
            self._found("altered", row.node, row.seq, text)

    def _gap(self, row: Row, walk: _Walk) -> None:
        text = f"records {walk.seq + 1} to {row.seq - 1} are missing"
        self._found("missing", row.node, walk.seq + 1, text)

    def finish(self) -> list[Finding]:
        """Say what was never read: a checkpoint beyond the end means a cut tail."""
        for (node, seq), _ in sorted(self._expected.items()):
            end = self._walks.get(node, _Walk()).seq
            if seq > end:
                text = f"the log ends at {end}, a signed checkpoint saw record {seq}"
                self._found("cut", node, seq, text)
        return self.findings

    def _found(self, kind: str, node: str, seq: int, text: str) -> None:
        self.findings.append(Finding(kind, str(node), seq, text))

    @property
    def heads(self) -> Mapping[str, int]:
        """The last record of each node."""
        return {node: walk.seq for node, walk in self._walks.items()}
