"""Ids: canonical tool ids (C1.1) and the time-ordered ids of calls, questions and blobs."""

from __future__ import annotations

import os
import re
import time
from enum import Enum

_FOREIGN = re.compile(r"[^a-z0-9_]")
WIRE_NAME_LENGTH = 64


class Kind(Enum):
    """Where a tool comes from; the first part of its canonical id."""

    BUILTIN = "builtin"
    MCP = "mcp"
    EXTENSION = "ext"
    AGENT = "agent"
    A2A = "a2a"
    CLIENT = "client"
    # Each is equal to itself alone. That of `Enum` is a Python function, and a call needs several.
    __hash__ = object.__hash__

    def __init__(self, word: str) -> None:
        # The seed's word for it, as the audit's context has it.
        self.source_type = "extension" if word == "ext" else word


def tool_id(kind: Kind, *parts: str) -> str:
    """Canonical id: used in the audit log, in policy and in configuration."""
    return ":".join((kind.value, *parts))


def wire_name(*parts: str) -> str:
    """Join parts as models may see them: lower case, every foreign character `_`. Not injective."""
    return _FOREIGN.sub("_", "_".join(parts).lower())


class _Chance:
    """Random bytes from the system, fetched by the page: a call needs three handfuls."""

    __slots__ = ("_at", "_page")
    SIZE = 4096

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Throw the page away: a forked child must not read its parent's."""
        self._page = ""
        self._at = 0

    def hex(self, count: int) -> str:
        """Take that many bytes, as hex."""
        start, end = self._at, self._at + 2 * count
        if end > len(self._page):
            self._page = os.urandom(self.SIZE).hex()
            start, end = 0, 2 * count
        self._at = end
        return self._page[start:end]


_chance = _Chance()
os.register_at_fork(after_in_child=_chance.renew)


def random_hex(count: int) -> str:
    """That many random bytes, as hex: for ids, not for secrets."""
    return _chance.hex(count)


def new_id(prefix: str) -> str:
    """Make an id that sorts by time: 48 bits of milliseconds, 80 bits of chance, in hex."""
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{_chance.hex(10)}"
