"""Conditions on lists of values, as every database reads them: an empty one too. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def marks(values: Collection[object]) -> str:
    """One mark for each value."""
    return ", ".join("?" * len(values))


def among(column: str, values: Collection[object]) -> str:
    """Whether a column is one of the values."""
    return f"{column} IN ({marks(values)})" if values else "1 = 0"


def outside(column: str, values: Collection[object]) -> str:
    """Whether a column is none of the values."""
    return f"{column} NOT IN ({marks(values)})" if values else "1 = 1"
