"""One call in an extension's process, from outside: its answer, and the calls that it makes."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from openfang.core.artifacts import artifact_parts
from openfang.core.errors import CallFailed, OpenFangError, SourceFailed
from openfang.core.labels import Labels
from openfang.core.results import Result, error_result, text_part
from openfang.core.values import dataclass
from openfang.host.children.running import Running
from openfang.protocols.children import messages
from openfang.protocols.children.messages import Asked, Called, Raised, Returned, Said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from openfang.core.calls import Admitted, Call
    from openfang.core.extensions import ExtensionSpec
    from openfang.core.progress import Told
    from openfang.host.children.running import Send

LOG = logging.getLogger("openfang.extensions")
_AT_ONCE: Final = 8
_FOREVER: Final = nullcontext()


@dataclass(slots=True)
class Errand:
    """A call of a capability. What its own calls bring back marks all that it says from then on."""

    spec: ExtensionSpec
    admitted: Admitted
    made: Callable[[ExtensionSpec, Call, str, Mapping[str, Any]], Call]
    invoke: Callable[[Call], Awaitable[Result]]
    labels: Labels = field(default=Labels.NONE, init=False)

    def begin(self, number: int) -> bytes:
        """Write that the call is to begin."""
        arguments = dict(self.admitted.call.arguments)
        told = {"tool": self.admitted.tool.name, "arguments": arguments}
        return messages.begin(number, told)

    def running(self, number: int, send: Send) -> ToolRun:
        """Be the call from outside."""
        return ToolRun(number, self, send)

    def limited(self) -> AbstractContextManager[object]:
        """Leave the time to the pipeline."""
        return _FOREVER

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Result:
        """Make a call as the extension, on behalf of who called it."""
        made = self.made(self.spec, self.admitted.call, tool, arguments)
        call = replace(made, labels=self.admitted.labels | self.labels)
        try:
            result = await self.invoke(call)
        except CallFailed as failure:
            self.labels |= failure.labels
            raise
        self.labels |= result.labels
        return result


class ToolRun(Running[Result]):
    """A call under way."""

    log = LOG

    def __init__(self, number: int, errand: Errand, send: Send) -> None:
        super().__init__(number, send, _AT_ONCE)
        self.name = errand.spec.id
        self.who = f"The extension {self.name}"
        self._errand = errand

    def concluded(self, said: Said) -> None:
        """Take the end: an exception of the code's is its answer, in words."""
        match said:
            case Returned():
                self.conclude(self._result(said))
            case Raised(reason, traceback):
                LOG.warning("%s failed: %s\n%s", self._errand.admitted.tool.id, reason, traceback)
                self.conclude(error_result(reason, labels=self._errand.labels))
            case _:
                pass

    def _result(self, said: Returned) -> Result:
        words = (text_part(said.text),) if said.text is not None else ()
        return Result(
            content=(*words, *said.content, *artifact_parts(self.artifacts)),
            structured=said.structured,
            is_error=said.is_error,
            labels=self._errand.labels,
        )

    def late(self) -> OpenFangError:
        """Say that it came to no end: nobody here limits its time."""
        return SourceFailed(f"{self.who} did not answer.")

    def told(self, told: Told) -> None:
        """Pass it on to whoever made the call."""
        listener = self._errand.admitted.progress
        if listener is not None:
            listener(told)

    async def answer(self, said: Called | Asked) -> bytes:
        """Make its call; a refusal goes back to it, and it may do without."""
        if isinstance(said, Asked):
            error = SourceFailed("An extension cannot ask a person.", way_out="let its caller ask")
            return messages.failure(self.number, said.call, error)
        try:
            result = await self._errand.call(said.tool, said.arguments)
        except OpenFangError as error:
            return messages.failure(self.number, said.call, error)
        return messages.result(self.number, said.call, result)
