"""Is the audit log what was written? The chain, against checkpoints from both places."""

from __future__ import annotations

from contextlib import aclosing
from itertools import chain as joined
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.audit.chain import Checkpoint, Row, Verifier
from openfang.audit.export import ExportHead, Span, head_body, point_body
from openfang.audit.notary import genuine, second_place, sorted_out
from openfang.core.bookmarks import bookmark
from openfang.core.log import Finding, Proof, Verification
from openfang.core.values import dataclass
from openfang.storage.log import batches, checkpoints, places, record, rows
from openfang.storage.units import GENESIS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from openfang.app.parts import Parts
    from openfang.core.bookmarks import Bookmark
    from openfang.storage.log import LogRow
    from openfang.storage.ports import Reader

_END: Final = 2**62


async def verify(parts: Parts) -> Verification:
    """Read the whole log. Takes a while: it is looked at aside."""
    outside = await to_thread.run_sync(_kept_outside, parts)
    return await parts.database.aside(lambda reader: _verified(reader, parts, outside))


async def _verified(reader: Reader, parts: Parts, outside: list[Checkpoint]) -> Verification:
    stored = await _kept_inside(reader)
    public_key = parts.master.signing_key().public_key()
    formed, malformed = sorted_out(joined(stored, outside))
    points, forged = genuine(formed, public_key)
    verifier = Verifier(points)
    async with aclosing(batches(reader)) as some:
        async for found in some:
            for row in found:
                verifier.read(_row(row))
    findings = [*malformed, *forged, *verifier.finish()]
    if points and not outside:
        findings.append(_no_second_place(points[-1]))
    findings += _unsigned(points, verifier.heads, 2 * parts.config.audit.checkpoint_every)
    return Verification(
        records=verifier.records,
        checkpoints=len(points),
        heads=verifier.heads,
        key=public_key.public_bytes_raw().hex(),
        findings=tuple(findings),
    )


async def prove(parts: Parts, seq: int, digest: str) -> Proof:
    """Look for the record of a receipt, and follow the chain to the next checkpoint that is signed.

    A few records are read, not the whole log; still, aside.
    """
    outside = await to_thread.run_sync(_kept_outside, parts)
    return await parts.database.aside(lambda reader: _proven(reader, parts, outside, seq, digest))


async def _proven(
    reader: Reader, parts: Parts, outside: list[Checkpoint], seq: int, digest: str
) -> Proof:
    found = await record(reader, seq, bytes.fromhex(digest))
    if found is None:
        return Proof(proven=False, signed=None, text=f"The log has no record {seq} with this hash.")
    node, kept = found[0], await _points(reader, parts, outside)
    points = [point for point in kept if point.node == node and point.seq >= seq]
    covering = min(points, key=lambda point: point.seq, default=None)
    before = (await places(reader, seq - 1)).get(node, GENESIS)
    verifier = Verifier([] if covering is None else [covering], {node: before})
    async with aclosing(rows(reader, after=seq - 1, node=node)) as following:
        async for row in following:
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


@dataclass(frozen=True, slots=True)
class Export:
    """An export that was begun: its first lines, and up to which record of each node it goes."""

    lines: Sequence[Mapping[str, Any]]
    ends: Mapping[str, int]

    def covers(self, row: LogRow) -> bool:
        """Whether a record was there when it was begun."""
        return row[1] <= self.ends.get(row[0], 0)


async def opened(parts: Parts, after: int | Bookmark, at: int) -> Export:
    """Begin an export of all records behind a number."""
    outside = await to_thread.run_sync(_kept_outside, parts)
    return await parts.database.aside(lambda reader: _opened(reader, parts, outside, after, at))


async def _opened(
    reader: Reader, parts: Parts, outside: list[Checkpoint], after: int | Bookmark, at: int
) -> Export:
    since = bookmark(after)
    kept = await _points(reader, parts, outside)
    points = [point for point in kept if not since.has(point.node, point.seq)]
    starts = await places(reader, after) if after else {}
    spans = tuple(
        Span(node=node, start=starts.get(node, GENESIS), end=end)
        for node, end in (await places(reader, _END)).items()
        if not since.has(node, end.seq)
    )
    head = ExportHead(at=at, spans=spans).signed(parts.master.signing_key())
    ends = {span.node: span.end.seq for span in spans}
    return Export([head_body(head), *map(point_body, points)], ends)


async def _points(reader: Reader, parts: Parts, outside: list[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints of both places, each once, as far as they are any."""
    formed, _ = sorted_out(joined(await _kept_inside(reader), outside))
    kept, _ = genuine(formed, parts.master.signing_key().public_key())
    return sorted(set(kept), key=lambda point: (point.node, point.seq, point.at))


async def _kept_inside(reader: Reader) -> list[Checkpoint]:
    return [
        Checkpoint(node=row[0], seq=row[1], at=row[2], hash=row[3], signer=row[4], signature=row[5])
        for row in await checkpoints(reader)
    ]


def _kept_outside(parts: Parts) -> list[Checkpoint]:
    return list(second_place(Path(parts.config.audit.checkpoint_file)))


def _row(row: LogRow) -> Row:
    return Row(row[0], row[1], row[2], row[3:9], row[9])


def _unsigned(
    points: Sequence[Checkpoint], heads: Mapping[str, int], most: int
) -> Iterator[Finding]:
    """Name the nodes that have signed nothing.

    A home begins with a checkpoint: `openfang init` signs its first record. A node that joined
    others signs after so many records, or soon.
    """
    signed = {point.node for point in points}
    for node, seq in heads.items():
        if node not in signed and (not signed or seq > most):
            yield _no_checkpoint(node, seq)


def _no_checkpoint(node: str, seq: int) -> Finding:
    text = "there are records, and no signed checkpoint in either place"
    return Finding("no_checkpoint", node, seq, text)


def _no_second_place(point: Checkpoint) -> Finding:
    text = "the file of checkpoints outside the database is missing"
    return Finding("second_place", point.node, point.seq, text)
