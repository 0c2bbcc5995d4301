"""What really stands between a running child and us: as /proc shows it, not as it was asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from openfang.core.values import dataclass
from openfang.host.cgroups import NAME

_NAMESPACES: Final = ("mnt", "pid", "net", "ipc", "uts", "user")
# The sandbox's own program stays outside; the first process inside of it has the child below it.
_DEPTH: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What it may take: processes of its user, bytes in each, and whether a group counts it."""

    processes: int | None = None
    data: int | None = None
    group: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One process: which namespaces are not ours, and what it could still do."""

    own: frozenset[str]
    capable: bool
    may_gain: bool
    filtered: bool
    user: int
    bounds: Bounds = Bounds()


def look_at(pid: int) -> Sight | None:
    """Look at the child that was started as `pid`; None where that cannot be seen. Blocks."""
    try:
        inner = _innermost(pid)
        status = _status(inner)
        return Sight(
            own=frozenset(name for name in _NAMESPACES if _namespace(inner, name)),
            capable=int(status["CapEff"], 16) != 0,
            may_gain=status["NoNewPrivs"] != "1",
            filtered=status["Seccomp"] != "0",
            user=int(status["Uid"].split()[0]),
            bounds=_bounds(inner),
        )
    except (OSError, KeyError, ValueError):
        return None


def _innermost(pid: int) -> int:
    for _ in range(_DEPTH):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            break
        pid = int(children[0])
    return pid


def _namespace(pid: int, name: str) -> bool:
    """Whether it has one of its own."""
    theirs = os.readlink(f"/proc/{pid}/ns/{name}")  # noqa: PTH115 - it is no path
    return theirs != os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115 - as above


def _bounds(pid: int) -> Bounds:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return Bounds(
        processes=_limit(lines, "Max processes"),
        data=_limit(lines, "Max data size"),
        group=f"/{NAME}" in Path(f"/proc/{pid}/cgroup").read_text(),
    )


def _limit(lines: list[str], name: str) -> int | None:
    soft = next(line.removeprefix(name).split()[0] for line in lines if line.startswith(name))
    return int(soft) if soft.isdigit() else None


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name: value.strip() for name, _, value in pairs}
