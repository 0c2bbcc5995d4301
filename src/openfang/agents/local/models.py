"""The model files that are served now: one process for each, started at its first use."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openfang.agents.local.model import again
from openfang.agents.local.serving import Serving
from openfang.agents.models.failures import ModelFailed, Trouble
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskGroup

    from openfang.agents.local.weights import Weights
    from openfang.host.children.start import Confine

IDLE_SECONDS: Final = 900.0
MOST: Final = 4


@dataclass(slots=True, kw_only=True)
class LocalModels:
    """Starts and ends the processes. A start belongs to nobody: who leaves leaves it to others.

    One that nobody used for `idle` seconds is ended.
    """

    confine: Confine
    home: Path
    tasks: TaskGroup
    python: str = sys.executable
    idle: float = IDLE_SECONDS
    serving: dict[Path, Serving] = field(default_factory=dict[Path, Serving])

    @asynccontextmanager
    async def held(self, weights: Weights) -> AsyncGenerator[Serving]:
        """Give a process that serves this file; it stays for as long as it is held."""
        serving = self._found(weights)
        with serving.used():
            await serving.known.wait()
            if serving.failure is not None:
                raise again(serving.failure)
            yield serving

    def _found(self, weights: Weights) -> Serving:
        known = self.serving.get(weights.file)
        if known is not None and not known.over.is_set() and known.weights == weights:
            return known
        if known is not None:
            known.retire()
        self._make_room()
        serving = self.serving[weights.file] = Serving(weights)
        self.tasks.start_soon(serving.live, self)
        return serving

    def _make_room(self) -> None:
        """End the one that was not used for the longest time, where there are enough."""
        self.serving = {key: one for key, one in self.serving.items() if not one.over.is_set()}
        if len(self.serving) < MOST:
            return
        unused = [one for one in self.serving.values() if not one.users]
        if not unused:
            raise ModelFailed(
                f"{MOST} model files are in use, and no more are loaded at once.",
                trouble=Trouble.BUSY,
                way_out="a moment later, or [[fallback_models]]",
            )
        min(unused, key=lambda one: one.rested).retire()
