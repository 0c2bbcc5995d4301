"""The stamp that sources check: a call without it did not take the one path."""

from __future__ import annotations

import hmac
import os
from hashlib import blake2b
from typing import TYPE_CHECKING

from openfang.core.errors import SourceFailed

if TYPE_CHECKING:
    from openfang.core.calls import Admitted


class Stamper:
    """Stamps call ids with a key that lives as long as the process."""

    __slots__ = ("_key",)

    def __init__(self) -> None:
        self._key = os.urandom(32)

    def make(self, call_id: str) -> bytes:
        """Stamp one call."""
        return blake2b(call_id.encode(), key=self._key, digest_size=16).digest()

    def check(self, admitted: Admitted) -> None:
        """Raise unless the pipeline let this very call through."""
        if not hmac.compare_digest(admitted.stamp, self.make(admitted.call.id)):
            raise SourceFailed(f"Call {admitted.call.id} of {admitted.tool.id} has no valid stamp.")
