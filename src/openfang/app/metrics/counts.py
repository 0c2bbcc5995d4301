"""What was counted, at one moment: plain numbers, before any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0)
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCount:
    """The calls of one tool: how they ended, and how many took as long as each bucket says."""

    tool: str
    outcomes: Mapping[str, int]
    buckets: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """How the last load of the configuration went, and when the one in force was read."""

    success: bool
    in_force_since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything at one moment."""

    version: str
    readings: Mapping[str, float]
    tools: tuple[ToolCount, ...]
    refusals: Mapping[str, int]
    requests: Mapping[tuple[str, str], int]
    reload: Reload | None
