"""Is the audit log what was written? The chain, against checkpoints from both places."""

from __future__ import annotations

from itertools import chain as joined
from pathlib import Path
from typing import TYPE_CHECKING

from openfang.audit.chain import Checkpoint, Row, Verifier
from openfang.audit.notary import genuine, second_place
from openfang.core.log import Finding, Verification
from openfang.storage.log import checkpoints, rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.app.parts import Parts


def verify(parts: Parts) -> Verification:
    """Read the whole log. Takes a while; run it in a thread."""
    stored = (
        Checkpoint(node=row[0], seq=row[1], at=row[2], hash=row[3], signer=row[4], signature=row[5])
        for row in checkpoints(parts.database)
    )
    outside = list(second_place(Path(parts.config.audit.checkpoint_file)))
    public_key = parts.master.signing_key().public_key()
    formed, malformed = _sorted_out(joined(stored, outside))
    points, forged = genuine(formed, public_key)
    verifier = Verifier(points)
    for row in rows(parts.database.path):
        verifier.read(Row(row[0], row[1], row[2], row[3:9], row[9]))
    findings = [*malformed, *forged, *verifier.finish()]
    if points and not outside:
        findings.append(_no_second_place(points[-1]))
    if not points:  # a home begins with one: `openfang init` signs its first record
        findings += [_no_checkpoint(node, seq) for node, seq in verifier.heads.items()]
    return Verification(
        records=verifier.records,
        checkpoints=len(points),
        heads=verifier.heads,
        findings=tuple(findings),
    )


def _sorted_out(points: Iterable[Checkpoint]) -> tuple[list[Checkpoint], list[Finding]]:
    """Set aside what cannot even be checked: a field that is not of its type."""
    formed, malformed = list[Checkpoint](), list[Finding]()
    for point in points:
        if point.well_formed:
            formed.append(point)
        else:
            text = "the checkpoint is not as any node writes it"
            malformed.append(Finding("forged", str(point.node), point.seq, text))
    return formed, malformed


def _no_checkpoint(node: str, seq: int) -> Finding:
    text = "there are records, and no signed checkpoint in either place"
    return Finding("no_checkpoint", node, seq, text)


def _no_second_place(point: Checkpoint) -> Finding:
    text = "the file of checkpoints outside the database is missing"
    return Finding("second_place", point.node, point.seq, text)
