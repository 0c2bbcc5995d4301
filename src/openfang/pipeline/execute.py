"""Running what was admitted: a slot, a deadline, the source, and what its breaker hears of it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from openfang.core.deadline import Deadline, Pause
from openfang.core.errors import CallFailed, CallTimedOut, SourceFailed
from openfang.core.values import dataclass
from openfang.pipeline.patience import Patient
from openfang.pipeline.slot import Slot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from openfang.core.calls import Admitted
    from openfang.core.ids import Kind
    from openfang.core.ports import Clock, ToolSource
    from openfang.core.results import Result
    from openfang.core.tools import Tool
    from openfang.pipeline.guards import Guards
    from openfang.safety.redact import Redactor

_log = logging.getLogger("openfang.pipeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Reaches the sources; nothing else does."""

    sources: Mapping[tuple[Kind, str], ToolSource]
    guards: Guards
    redactor: Redactor
    clock: Clock

    def run(self, admitted: Admitted) -> Awaitable[Result]:
        """Wait for a slot, which is not counted, and run."""
        tool = admitted.tool
        source = self.sources.get((tool.kind, tool.source))
        if source is None:
            raise SourceFailed(f"{tool.id} was just removed.", way_out="openfang tools list")
        return self._in_lane(source, admitted) if tool.lane else self._within(source, admitted)

    async def _in_lane(self, source: ToolSource, admitted: Admitted) -> Result:
        tool = admitted.tool
        slot = Slot(self.guards.slots, tool.lane, tool.at_once, admitted.call.caller.id)
        async with slot:
            self.guards.still(tool, self.clock.monotonic())
            # Another may have taken its place while we waited; one that is gone ends what it began.
            source = self.sources.get((tool.kind, tool.source), source)
            return await self._within(source, admitted, slot)

    async def _within(
        self, source: ToolSource, admitted: Admitted, slot: Slot | None = None
    ) -> Result:
        tool = admitted.tool
        deadline = Deadline(admitted.timeout)
        try:
            with deadline:
                result = await source.execute(_patient(admitted, deadline, slot))
        except CallFailed as error:
            failure = self._without_secrets(error)
        except Exception as error:  # noqa: BLE001 - a source is somebody else's code
            failure = _timed_out(admitted) if deadline.expired else broke(tool, error)
        except BaseException:
            self.guards.abandoned(tool, self.clock.monotonic())
            raise
        else:
            self.guards.succeeded(tool)
            return result
        self.guards.failed(tool, failure.message, self.clock.monotonic())
        raise failure

    def _without_secrets(self, failure: CallFailed) -> CallFailed:
        """What a source says of its failure goes to callers, to the log and to the breaker."""
        failure.message = self.redactor.text(failure.message).text
        failure.args = (failure.message,)
        return failure


def _patient(admitted: Admitted, deadline: Deadline, slot: Slot | None) -> Admitted:
    """Stop the clock, and lend the slot, for as long as the client, or a person, is being asked."""
    call = admitted.call
    if admitted.tool.calls_on:
        call = replace(call, pause=Pause(deadline, call.pause))
        admitted = replace(admitted, call=call)
    client = call.client
    return admitted if client is None else replace(admitted, client=Patient(client, deadline, slot))


def _timed_out(admitted: Admitted) -> CallFailed:
    return CallTimedOut(
        f"{admitted.tool.id} did not answer within {admitted.timeout:g} s.",
        way_out="tools.timeout_secs, or the server's timeout_secs, raises the limit",
    )


def broke(tool: Tool, error: Exception) -> CallFailed:
    """Other people's errors go to the log; the caller hears only their kind."""
    _log.error("%s broke", tool.id, exc_info=error)
    return SourceFailed(f"{tool.id} broke: {type(error).__name__}.", way_out="see the log")
