"""Whose parts the seed's names work on."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from openfang.compat.audit import audit_logger
from openfang.core.errors import HomeError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.app.parts import Parts
    from openfang.core.calls import Caller


@dataclass(frozen=True, slots=True, eq=False)
class House:
    """The parts of an open home, and who uses them."""

    parts: Parts
    caller: Caller


_in_use: list[House] = []


@asynccontextmanager
async def use(parts: Parts, caller: Caller) -> AsyncGenerator[House]:
    """Put a house in use. Handlers of `audit_logger` are fed meanwhile, and once more at the end.

    Use it inside the context that opened the parts.
    """
    house = House(parts, caller)
    _in_use.append(house)
    try:
        async with audit_logger.serving(parts.sinks):
            yield house
    finally:
        _in_use.remove(house)


def in_use() -> House | None:
    """Return the house in use, if there is one."""
    return _in_use[-1] if _in_use else None


def current() -> House:
    """Return the house in use."""
    if not _in_use:
        raise HomeError(
            "No house is in use: the seed's names need an open home and a caller.",
            way_out="async with openfang.compat.use(parts, caller), or hand a House in",
        )
    return _in_use[-1]
