"""The extensions that run here: put in, replaced and taken out while everything else goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from openfang.sources.extensions.spec import ExtensionSpec

How: TypeAlias = Literal["idle", "running", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How an extension is: `reason` and `way_out` say why it failed; `layers` what confines it."""

    how: How
    reason: str = ""
    way_out: str = ""
    pid: int = 0
    layers: tuple[str, ...] = ()
    restarts: int = 0
    held_back: tuple[str, ...] = ()


class Extensions:
    """Implements what installs and reloads need."""

    async def put(self, spec: ExtensionSpec) -> None:
        """Offer an extension, or replace one; what is under way goes on to its end."""
        raise NotImplementedError

    async def drop(self, extension: str) -> None:
        """Take an extension and its tools away; one that is not there is no fault."""
        raise NotImplementedError

    def state(self, extension: str) -> State:
        """Say how an extension is; `NotFound` where there is none."""
        raise NotImplementedError
