"""A source whose tools tell and ask on their way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio

from openfang.core.clients import ELICITATION
from openfang.core.ids import Kind
from openfang.core.progress import Progress
from openfang.core.results import text_result
from openfang.core.tools import Risk
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.calls import Admitted
    from openfang.core.results import Result

LOW: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
MARKED = {"properties": {"where": {"type": "string", "x-mcp-header": "Where"}}}
QUESTION: dict[str, Any] = {"message": "Who?", "requestedSchema": {"type": "object"}}


async def _unused(_: Mapping[str, Any]) -> Result:
    raise NotImplementedError


class Teller(TableSource):
    """What a tool does is in its name; `begun` is set when one waits or asks."""

    def __init__(self) -> None:
        names = ("tell", "tell_and_wait", "wait", "ask")
        rows: dict[str, Any] = dict.fromkeys(names, (LOW, _unused))
        rows["marked"] = ({**LOW, "input_schema": {"type": "object", **MARKED}}, _unused)
        super().__init__(Kind.MCP, "teller", rows)
        self.go_on = anyio.Event()
        self.begun = anyio.Event()
        self.cancelled = anyio.Event()

    def put_another(self) -> None:
        """Offer one tool more, once it is asked for them again."""
        self.put("another", LOW, _unused)

    async def execute(self, admitted: Admitted) -> Result:
        self.check(admitted)
        self.calls.append(admitted)
        name, arguments = admitted.tool.name, admitted.call.arguments
        if name.startswith("tell") and admitted.progress is not None:
            for step in range(int(arguments.get("times", 1))):
                admitted.progress(Progress(progress=step + 1.0, total=9.0))
        try:
            if name.endswith("wait"):
                self.begun.set()
                await self.go_on.wait()
            if name == "ask":
                return await self._ask(admitted)
        except BaseException:
            self.cancelled.set()
            raise
        return text_result("x" * int(arguments.get("size", 4)))

    async def _ask(self, admitted: Admitted) -> Result:
        self.begun.set()
        if admitted.client is None:
            return text_result("nobody can be asked")
        answer = await admitted.client.ask(ELICITATION, QUESTION)
        return text_result(json.dumps(answer.structured), structured=answer.fault)
