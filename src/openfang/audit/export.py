"""A part of the log as lines that prove themselves, and the check of them. No I/O.

First a head that the node signs: which records of which nodes follow, and the hashes before the
first and of the last one. Then the signed checkpoints, then every record with all that is hashed.
Whoever has the node's public key finds every change to these lines without the node. What they
cannot show is that a later export ever was: hold them against checkpoints kept elsewhere for that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.audit.chain import Checkpoint, Row, Verifier
from openfang.audit.notary import checkpoint_body, genuine, is_signed, read_checkpoint, sorted_out
from openfang.core.log import Finding, Verification
from openfang.core.values import dataclass
from openfang.storage.units import Head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    from openfang.storage.log import LogRow

FORM: Final = 1
_HEAD: Final = "openfang_audit"
_POINT: Final = "checkpoint"
_COLUMNS: Final = ("event", "level", "call_id", "task_id", "payload", "context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The records of one node that an export holds: those behind `start`, up to `end`."""

    node: str
    start: Head
    end: Head


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportHead:
    """The node's word on what an export holds."""

    at: int
    spans: tuple[Span, ...]
    signature: bytes = b""

    @property
    def message(self) -> bytes:
        """What is signed."""
        text = f"openfang export {FORM};{self.at};"
        for span in self.spans:
            places = ";".join(f"{place.seq};{place.hash.hex()}" for place in (span.start, span.end))
            text += f"{len(span.node)}:{span.node}{places};"
        return text.encode()

    def signed(self, key: Ed25519PrivateKey) -> ExportHead:
        """The same, with the node's signature."""
        return replace(self, signature=key.sign(self.message))


def head_body(head: ExportHead) -> dict[str, Any]:
    """Write the first line."""
    return {
        _HEAD: FORM,
        "at": head.at,
        "nodes": [
            {"node": span.node, "start": _place(span.start), "end": _place(span.end)}
            for span in head.spans
        ],
        "signature": head.signature.hex(),
    }


def _place(place: Head) -> dict[str, Any]:
    return {"record": place.seq, "hash": place.hash.hex()}


def point_body(point: Checkpoint) -> dict[str, Any]:
    """Write the line of a checkpoint."""
    return {_POINT: checkpoint_body(point)}


def row_body(row: LogRow) -> dict[str, Any]:
    """Write the line of a record: what is hashed as it is, so not as an object but as its text."""
    node, seq, at, *columns, digest = (
        value if isinstance(value, str | int) else _odd(value) for value in row
    )
    line = dict(zip(_COLUMNS, columns, strict=True))
    return {"record": seq, "node": node, "at": at, **line, "hash": digest}


def _odd(value: object) -> object:
    """A hash; or what somebody else put into a column, so that it can be told."""
    return value.hex() if isinstance(value, bytes) else str(value)


def verify_lines(
    lines: Iterable[bytes], key: Ed25519PublicKey, elsewhere: Sequence[Checkpoint] = ()
) -> Verification:
    """Check an export against its hashes and signatures, and checkpoints that were kept elsewhere.

    What is wrong with it are findings, whatever the lines hold.
    """
    reading = _Reading(iter(lines), key)
    points = reading.opened(elsewhere)
    reading.read_records()
    return reading.finished(len(points))


class _Reading:
    """One export while it is read."""

    def __init__(self, lines: Iterator[bytes], key: Ed25519PublicKey) -> None:
        self._lines = lines
        self._key = key
        self._number = 0
        self._findings: list[Finding] = []
        self._held: dict[str, Any] | None = None
        self._ends: dict[str, int] = {}
        self.chain = Verifier(())

    def opened(self, elsewhere: Sequence[Checkpoint]) -> list[Checkpoint]:
        """Read what stands before the records; returns the checkpoints that count."""
        head = self._head()
        formed, malformed = sorted_out((*self._points(), *elsewhere))
        points, forged = genuine(formed, self._key)
        self._findings += (*malformed, *forged)
        spans = () if head is None else head.spans
        ends = [_end(span) for span in spans]
        self._ends = {span.node: span.end.seq for span in spans}
        self.chain = Verifier((*points, *ends), {span.node: span.start for span in spans})
        return points

    def _head(self) -> ExportHead | None:
        body = self._next()
        head = None if body is None else _read_head(body)
        if head is None:
            self._held = body
            text = "the export does not begin with the head that a node signs"
            self._found("forged", 0, f"{text}: one that does is made with --with-checkpoints")
        elif not is_signed(self._key, head.signature, head.message):
            self._found("forged", 0, "the head of the export is not signed with this key")
        else:
            return head
        return None

    def _points(self) -> Iterator[Checkpoint]:
        while (body := self._next()) is not None:
            if _POINT not in body:
                self._held = body
                return
            try:
                yield read_checkpoint(body[_POINT])
            except (ValueError, KeyError, TypeError):
                self._found("forged", 0, f"line {self._number} is no checkpoint")

    def read_records(self) -> None:
        """Read the records; what is none is told, and passed over."""
        read, none = self.chain.read, list[int]()
        while (body := self._next()) is not None:
            try:
                read(_read_row(body))
            except (KeyError, ValueError, TypeError):
                none.append(self._number)
        for first, last in _runs(none):
            is_none = f"line {first} is no record"
            several = f"lines {first} to {last} are no records"
            self._found("altered", 0, is_none if first == last else several)

    def _next(self) -> dict[str, Any] | None:
        held, self._held = self._held, None
        if held is not None:
            return held
        for line in self._lines:
            self._number += 1
            try:
                body: object = orjson.loads(line)
            except ValueError:
                body = None
            if isinstance(body, dict):
                return cast("dict[str, Any]", body)
            self._found("altered", 0, f"line {self._number} is no JSON object")
        return None

    def finished(self, points: int) -> Verification:
        """Say what was read, and what does not fit."""
        found = [*self._findings, *self.chain.finish()]
        for node, seq in self.chain.heads.items():
            if self._ends and seq > self._ends.get(node, 0):
                text = f"the export ended at {self._ends.get(node, 0)} when it was signed"
                found.append(Finding("added", node, seq, text))
        return Verification(
            records=self.chain.records,
            checkpoints=points,
            heads=self.chain.heads,
            key=self._key.public_bytes_raw().hex(),
            findings=tuple(found),
        )

    def _found(self, kind: str, seq: int, text: str) -> None:
        self._findings.append(Finding(kind, "", seq, text))


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Put numbers that follow each other together: the first and the last of each run."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _end(span: Span) -> Checkpoint:
    """The last record as the signed head has it: it covers the log as a checkpoint does."""
    return Checkpoint(node=span.node, seq=span.end.seq, at=0, hash=span.end.hash, signer="")


def _read_head(body: Mapping[str, Any]) -> ExportHead | None:
    try:
        if body[_HEAD] != FORM:
            return None
        return ExportHead(
            at=body["at"],
            spans=tuple(_read_span(one) for one in body["nodes"]),
            signature=bytes.fromhex(body["signature"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _read_span(body: Mapping[str, Any]) -> Span:
    return Span(
        node=str(body["node"]), start=_read_place(body["start"]), end=_read_place(body["end"])
    )


def _read_place(body: Mapping[str, Any]) -> Head:
    return Head(int(body["record"]), bytes.fromhex(body["hash"]))


def _read_row(body: Mapping[str, Any]) -> Row:
    """Read a record; a text that is none does not fit its hash, these three are counted."""
    node, seq, at = body["node"], body["record"], body["at"]
    if type(node) is not str or type(seq) is not int or type(at) is not int:
        raise TypeError(node)
    line = (
        *(body["event"], body["level"], body["call_id"]),
        *(body["task_id"], body["payload"], body["context"]),
    )
    return Row(node, seq, at, line, bytes.fromhex(body["hash"]))
