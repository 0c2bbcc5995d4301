"""What an egress may do, and what it tells of each host that a child asked for."""

from __future__ import annotations

from typing import TypeAlias

from openfang.core.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRules:
    """Who may be reached: hosts by glob (None means every public one), private addresses or not."""

    allow_hosts: tuple[str, ...] | None = None
    allow_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """How many connections there may be at once, and how long each may take over what."""

    connections: int = 128
    head_seconds: float = 15.0
    dial_seconds: float = 20.0
    idle_seconds: float = 600.0
    total_seconds: float = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A host was reached, at an address that had been checked."""

    host: str
    port: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A connection that had been opened has ended."""

    host: str
    port: int
    sent: int
    received: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A host may not be reached; without a host, what was asked could not be understood."""

    rule: str
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A host may be reached, and could not be."""

    host: str
    port: int
    reason: str


Visit: TypeAlias = Opened | Closed | Refused | Failed
