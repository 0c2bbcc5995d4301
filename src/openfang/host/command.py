"""A program of somebody else's, and what whoever starts it lets it reach."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from openfang.core.values import dataclass
from openfang.host.process import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from openfang.host.process import Launch
    from openfang.host.sandbox import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program: it reaches its own folders, and neither others nor a network unless told here.

    `name` is whose it is. `home`, `tmp` and `workspace` are its own, and writable; `own` are
    folders that it reads wherever they lie, `read` and `write` what the operator listed. Arguments
    open what they point at only where they are `trusted`: the operator's, or ours. `hosts` bounds
    whom it reaches by the network; None means everybody that the guard lets through.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    cwd: Path
    home: Path
    tmp: Path
    workspace: Path | None = None
    own: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    trusted: bool = False
    sandbox: Mode = "auto"
    network: bool = False
    hosts: tuple[str, ...] | None = None
    allow_private: bool = False
    limits: Limits = Limits()
    stdin: bytes | None = None
    timeout: float = 60.0
    output_limit: int = 1 << 20


class Confining(Protocol):
    """Says how a command is really started; what it needs meanwhile is held."""

    def __call__(self, command: Command) -> AbstractAsyncContextManager[Launch]:
        """Make its folders, and give what starts it confined."""
        ...
