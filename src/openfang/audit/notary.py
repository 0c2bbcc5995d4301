"""Signed checkpoints: the node's word on its chain, kept in the log and in a second place."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import orjson

from openfang.audit.chain import Checkpoint
from openfang.core.log import Finding
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    from openfang.storage.units import Head


def signer_id(public_key: Ed25519PublicKey) -> str:
    """Name a key by its fingerprint."""
    return sha256(public_key.public_bytes_raw()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notary:
    """Signs the head of a chain with the node's key."""

    node: str
    key: Ed25519PrivateKey
    file: Path

    def sign(self, head: Head, at: int) -> Checkpoint:
        """Make a checkpoint and append it to the second place."""
        signer = signer_id(self.key.public_key())
        point = Checkpoint(node=self.node, seq=head.seq, at=at, hash=head.hash, signer=signer)
        point = replace(point, signature=self.key.sign(point.message))
        self._append(point)
        return point

    def _append(self, point: Checkpoint) -> None:
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = orjson.dumps(checkpoint_body(point)) + b"\n"
        handle = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # What a full disk cut off stays by itself: it must not spoil the line after it.
            line = b"\n" + line if _is_torn(handle) else line
            if os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)


def _is_torn(handle: int) -> bool:
    size = os.fstat(handle).st_size
    return size > 0 and os.pread(handle, 1, size - 1) != b"\n"


def statement(point: Checkpoint) -> tuple[str, Sequence[Any]]:
    """Return the statement that keeps a checkpoint in the database."""
    sql = "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return sql, (point.node, point.seq, point.at, point.hash, point.signer, point.signature)


def second_place(file: Path) -> Iterator[Checkpoint]:
    """Read the checkpoints that were kept outside the database."""
    if not file.exists():
        return
    for line in file.read_bytes().splitlines():
        try:
            yield read_checkpoint(orjson.loads(line))
        except (ValueError, KeyError, TypeError):
            continue  # a torn last line: the process died while appending


def genuine(
    points: Iterable[Checkpoint], public_key: Ed25519PublicKey
) -> tuple[list[Checkpoint], list[Finding]]:
    """Keep the checkpoints that this node signed; the others are findings."""
    kept: list[Checkpoint] = []
    forged: list[Finding] = []
    for point in points:
        if is_signed(public_key, point.signature, point.message):
            kept.append(point)
        else:
            text = "the checkpoint is not signed by this node's key"
            forged.append(Finding("forged", point.node, point.seq, text))
    return kept, forged


def is_signed(public_key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether the holder of the key has signed this."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only verifying needs it

    try:
        public_key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def sorted_out(points: Iterable[Checkpoint]) -> tuple[list[Checkpoint], list[Finding]]:
    """Set aside what cannot even be checked: a field that is not of its type."""
    formed, malformed = list[Checkpoint](), list[Finding]()
    for point in points:
        if point.well_formed:
            formed.append(point)
        else:
            text = "the checkpoint is not as any node writes it"
            malformed.append(Finding("forged", str(point.node), point.seq, text))
    return formed, malformed


def checkpoint_body(point: Checkpoint) -> dict[str, Any]:
    """Write a checkpoint as it is kept outside the database."""
    return {
        "node": point.node,
        "seq": point.seq,
        "at": point.at,
        "hash": point.hash.hex(),
        "signer": point.signer,
        "signature": point.signature.hex(),
    }


def read_checkpoint(body: dict[str, Any]) -> Checkpoint:
    """Read one; its fields may be anything."""
    return Checkpoint(
        node=body["node"],
        seq=body["seq"],
        at=body["at"],
        hash=bytes.fromhex(body["hash"]),
        signer=body["signer"],
        signature=bytes.fromhex(body["signature"]),
    )
