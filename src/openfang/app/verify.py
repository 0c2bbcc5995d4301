"""Is the audit log what was written? The chain, against checkpoints from both places."""

from __future__ import annotations

from itertools import chain as joined
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.audit.chain import Checkpoint, Row, Verifier
from openfang.audit.export import ExportHead, Span, head_body, point_body
from openfang.audit.notary import genuine, second_place, sorted_out
from openfang.core.log import Finding, Proof, Verification
from openfang.storage.log import checkpoints, places, record, rows
from openfang.storage.units import GENESIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from openfang.app.parts import Parts
    from openfang.storage.log import LogRow

_END: Final = 2**62


def verify(parts: Parts) -> Verification:
    """Read the whole log. Takes a while; run it in a thread."""
    stored, outside = _kept_inside(parts), _kept_outside(parts)
    public_key = parts.master.signing_key().public_key()
    formed, malformed = sorted_out(joined(stored, outside))
    points, forged = genuine(formed, public_key)
    verifier = Verifier(points)
    for row in rows(parts.database.path):
        verifier.read(_row(row))
    findings = [*malformed, *forged, *verifier.finish()]
    if points and not outside:
        findings.append(_no_second_place(points[-1]))
    if not points:  # a home begins with one: `openfang init` signs its first record
        findings += [_no_checkpoint(node, seq) for node, seq in verifier.heads.items()]
    return Verification(
        records=verifier.records,
        checkpoints=len(points),
        heads=verifier.heads,
        key=public_key.public_bytes_raw().hex(),
        findings=tuple(findings),
    )


def prove(parts: Parts, seq: int, digest: str) -> Proof:
    """Look for the record of a receipt, and follow the chain to the next checkpoint that is signed.

    A few records are read, not the whole log; still, run it in a thread.
    """
    found = record(parts.database.path, seq, bytes.fromhex(digest))
    if found is None:
        return Proof(proven=False, signed=None, text=f"The log has no record {seq} with this hash.")
    node = found[0]
    points = [point for point in _points(parts) if point.node == node and point.seq >= seq]
    covering = min(points, key=lambda point: point.seq, default=None)
    before = places(parts.database.path, seq - 1).get(node, GENESIS)
    verifier = Verifier([] if covering is None else [covering], {node: before})
    for row in rows(parts.database.path, after=seq - 1, node=node):
        if row[1] > (seq if covering is None else covering.seq):
            break
        verifier.read(_row(row))
    return _proof(seq, covering, verifier.finish())


def _proof(seq: int, covering: Checkpoint | None, findings: list[Finding]) -> Proof:
    signed = None if covering is None else covering.seq
    if findings:
        text = f"The log has record {seq}, but is not what was written: {findings[0].text}."
        return Proof(proven=False, signed=signed, text=text)
    if signed is None:
        return Proof(proven=True, signed=None, text=f"The log has record {seq}, not yet signed.")
    text = f"The log has record {seq}, under the checkpoint signed at record {signed}."
    return Proof(proven=True, signed=signed, text=text)


def opened(parts: Parts, after: int, at: int) -> tuple[list[Mapping[str, Any]], Iterator[LogRow]]:
    """Begin an export of all records behind a number: its first lines, and the records."""
    points = [point for point in _points(parts) if point.seq > after]
    path = parts.database.path
    starts = places(path, after) if after else {}
    spans = tuple(
        Span(node=node, start=starts.get(node, GENESIS), end=end)
        for node, end in places(path, _END).items()
        if end.seq > after
    )
    head = ExportHead(at=at, spans=spans).signed(parts.master.signing_key())
    ends = {span.node: span.end.seq for span in spans}
    found = (row for row in rows(path, after=after) if row[1] <= ends.get(row[0], 0))
    return [head_body(head), *map(point_body, points)], found


def _points(parts: Parts) -> list[Checkpoint]:
    """The checkpoints of both places, each once, as far as they are any."""
    formed, _ = sorted_out(joined(_kept_inside(parts), _kept_outside(parts)))
    kept, _ = genuine(formed, parts.master.signing_key().public_key())
    return sorted(set(kept), key=lambda point: (point.node, point.seq, point.at))


def _kept_inside(parts: Parts) -> list[Checkpoint]:
    return [
        Checkpoint(node=row[0], seq=row[1], at=row[2], hash=row[3], signer=row[4], signature=row[5])
        for row in checkpoints(parts.database)
    ]


def _kept_outside(parts: Parts) -> list[Checkpoint]:
    return list(second_place(Path(parts.config.audit.checkpoint_file)))


def _row(row: LogRow) -> Row:
    return Row(row[0], row[1], row[2], row[3:9], row[9])


def _no_checkpoint(node: str, seq: int) -> Finding:
    text = "there are records, and no signed checkpoint in either place"
    return Finding("no_checkpoint", node, seq, text)


def _no_second_place(point: Checkpoint) -> Finding:
    text = "the file of checkpoints outside the database is missing"
    return Finding("second_place", point.node, point.seq, text)
