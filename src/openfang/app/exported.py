"""An export as commands write and check it: forms for other programs, and a file without a home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.audit.cef import cef_line
from openfang.audit.export import verify_lines
from openfang.audit.notary import second_place
from openfang.audit.otlp import otlp_body

if TYPE_CHECKING:
    from pathlib import Path

    from openfang.core.log import Verification

__all__ = ["cef_line", "check_export", "otlp_body"]


def check_export(file: Path, key: bytes, elsewhere: Path | None) -> Verification:
    """Check an export against a public key, and checkpoints that were kept elsewhere."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - start-up time
        Ed25519PublicKey,
    )

    points = [] if elsewhere is None else list(second_place(elsewhere))
    with file.open("rb") as lines:
        return verify_lines(lines, Ed25519PublicKey.from_public_bytes(key), points)
