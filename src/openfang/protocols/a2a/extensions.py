"""The extension of A2A that is ours: a message tells whose call it goes on with (C8)."""

from __future__ import annotations

from typing import Final

CHAIN: Final = "urn:openfang:a2a:chain:1"
HEADER: Final = "A2A-Extensions"
