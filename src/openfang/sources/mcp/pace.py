"""How long things may take with a server, and how often they are done."""

from __future__ import annotations

from openfang.core.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things may take, and how often they are done, in seconds.

    A connection that lasted `steady` is no sign of a server that cannot last. After `share` times
    as long as it took, a list may be asked for again because the server says that it changed.
    Whoever asks for one waits no longer than `awaited`.
    """

    connect: float = 120.0  # a package that must be fetched first is no failure
    refresh: float = 300.0
    awaited: float = 10.0
    probe: float = 60.0
    probe_limit: float = 10.0
    breath: float = 1.0
    share: float = 10.0
    steady: float = 10.0
    retire: float = 60.0
    grace: float = 0.5
