"""Refuses JSON whose many small values would hold up the loop, before anybody reads it."""

from __future__ import annotations

from typing import Final

from anyio import to_thread

from openfang.core.errors import SourceFailed
from openfang.safety.sizes import has_more_tokens

MOST_TOKENS: Final = 50_000


async def check_weight(url: str, body: bytes) -> None:
    """Look through what came from there, beside the loop where that takes time."""
    if len(body) <= MOST_TOKENS:
        return
    if b"\0" in body:  # so that nobody after us takes it for another encoding
        raise SourceFailed(f"{url} answered with bytes that are no JSON in UTF-8")
    if await to_thread.run_sync(has_more_tokens, body, MOST_TOKENS):
        raise SourceFailed(f"{url} answered with JSON of more than {MOST_TOKENS} tokens")
