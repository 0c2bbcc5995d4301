"""One extension as a source of tools: its process is started when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.values import dataclass
from openfang.host.children.keeper import Keeper
from openfang.sources.extensions.adapter import tools_of
from openfang.sources.extensions.recipe import recipe_of
from openfang.sources.extensions.running import Errand

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from openfang.core.calls import Admitted, Call
    from openfang.core.extensions import ExtensionSpec
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.host.children.keeper import Means
    from openfang.host.children.start import Recipe
    from openfang.registry.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every extension is handed.

    `made` makes the call that an extension makes while it serves another; `environ` is where the
    variables come from that it is permitted.
    """

    means: Means
    check: Callable[[Admitted], None]
    made: Callable[[ExtensionSpec, Call, str, Mapping[str, Any]], Call]
    invoke: Callable[[Call], Awaitable[Result]]
    environ: Mapping[str, str]


class ExtensionSource:
    """Implements `ToolSource` for one extension. What it begins ends even when it is replaced."""

    def __init__(self, spec: ExtensionSpec, around: Surroundings, rules: Rules) -> None:
        self.spec = spec
        self.keeper = Keeper(around.means)
        self._around = around
        self._tools = tools_of(spec, rules)
        self.fault: OpenFangError | None = None
        self.recipe = self._made()
        self._running = 0
        self._leaving = False

    def _made(self) -> Recipe | None:
        """Say what to start; what stands against that is told to who calls."""
        try:
            return recipe_of(self.spec, self._around.environ)
        except OpenFangError as error:
            self.fault = error
            return None

    @property
    def name(self) -> str:
        """The second part of its tools' ids."""
        return self.spec.id

    def tools(self) -> Sequence[Tool]:
        """List what its manifest declares."""
        return self._tools

    def judge(self, rules: Rules) -> None:
        """Tell risk and effects by other words from now on."""
        self._tools = tools_of(self.spec, rules)

    def retire(self) -> None:
        """End with the last call."""
        self._leaving = True
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._leaving and not self._running:
            self.keeper.retire()

    @property
    def _way_out(self) -> str:
        return self.fault.way_out if self.fault else ""

    async def execute(self, admitted: Admitted) -> Result:
        """Hand a call to the process. One that dies, or is no more, fails the call with why."""
        around = self._around
        around.check(admitted)
        if self.recipe is None:
            raise SourceFailed(str(self.fault and self.fault.message), way_out=self._way_out)
        self._running += 1
        try:
            warm = await self.keeper.warm(self.recipe)
            return await warm.serve(Errand(self.spec, admitted, around.made, around.invoke))
        finally:
            self._running -= 1
            self._end_if_idle()
