"""Clients that can be asked while a call of theirs runs: each is a source like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openfang.core.ids import Kind
from openfang.sources.clients import ClientSource

if TYPE_CHECKING:
    from openfang.app.parts import Parts

MOST: Final = 1000


def client_known(parts: Parts, key: str) -> None:
    """Let a client be asked: what it is asked is a call like any other."""
    if (Kind.CLIENT, key) in parts.sources:
        return
    clients = [name for kind, name in parts.sources if kind is Kind.CLIENT]
    if len(clients) >= MOST:
        parts.remove(Kind.CLIENT, clients[0])
    parts.add(Kind.CLIENT, ClientSource(key, parts.pipeline.stamper.check))
