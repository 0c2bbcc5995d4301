"""An extension whose process speaks with us directly, as it is kept."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from openfang.app.extensions.state import State
from openfang.core.errors import OpenFangError
from openfang.sources.extensions.source import ExtensionSource

if TYPE_CHECKING:
    from openfang.core.extensions import ExtensionSpec
    from openfang.host.children.start import Recipe
    from openfang.registry.rules import Rules
    from openfang.sources.extensions.source import Surroundings

_log = logging.getLogger("openfang.extensions")


class Owned:
    """One of them. What it requires is installed before the first call has to wait for that."""

    def __init__(self, around: Surroundings, spec: ExtensionSpec, rules: Rules) -> None:
        self.spec = spec
        self.source = ExtensionSource(spec, around, rules)
        self._means = around.means
        self._fault = self.source.fault
        if self.source.recipe is not None:
            self._means.tasks.start_soon(self._prepare, self.source.recipe)

    async def _prepare(self, recipe: Recipe) -> None:
        means = self._means
        try:
            await means.environments.runtime(recipe.runtime, means.tasks, recipe.settings)
        except OpenFangError as error:
            self._fault = error
            _log.warning("%s cannot run: %s", recipe.who, error.message)

    async def settled(self) -> None:
        """Its manifest has said what it offers."""

    def state(self) -> State:
        """Say how it is."""
        keeper, fault = self.source.keeper, self._fault
        if keeper.pid:
            return State(
                how="running", pid=keeper.pid, layers=keeper.layers, restarts=keeper.restarts
            )
        reason, way_out = keeper.trouble
        if not reason and fault is not None:
            reason, way_out = fault.message, fault.way_out
        how = "failed" if reason else "idle"
        return State(how=how, reason=reason, way_out=way_out, restarts=keeper.restarts)
