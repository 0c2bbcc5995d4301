"""A client as a source: what it can be asked while a call of its own is under way (C1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.core.clients import ELICITATION, QUESTIONS, ROOTS, SAMPLING
from openfang.core.errors import SourceFailed
from openfang.core.ids import Kind, tool_id
from openfang.core.labels import Labels
from openfang.core.tools import Risk, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openfang.core.calls import Admitted
    from openfang.core.results import Result

_ASK_SECONDS: Final = 600.0
_SCHEMA: Final[Mapping[str, Any]] = {"type": "object"}
_DESCRIPTIONS: Final = {
    SAMPLING: "Have the client's model write something.",
    ELICITATION: "Have the client ask its user.",
    ROOTS: "Have the client say which folders it works in.",
}
# A model's words cost somebody something: that belongs to a project.
_RISKS: Final = {SAMPLING: Risk.MEDIUM}
_LABELS: Final = {ELICITATION: Labels.USER_INPUT}


class ClientSource:
    """The client of one caller. `check` refuses what has not come by the pipeline."""

    def __init__(self, name: str, check: Callable[[Admitted], None]) -> None:
        self._name = name
        self._check = check
        self._tools = [_tool(name, method) for method in QUESTIONS]

    @property
    def name(self) -> str:
        """The second part of its tools' ids."""
        return self._name

    def tools(self) -> Sequence[Tool]:
        """List what it can be asked, if it says that it can."""
        return self._tools

    async def execute(self, admitted: Admitted) -> Result:
        """Ask it, for as long as a question may take."""
        self._check(admitted)
        # The client of the call that the question belongs to, whose time then stands still; that of
        # the question itself does not.
        client = admitted.call.client
        if client is None or client.key != self._name:
            raise SourceFailed(
                f"{self._name} has no call under way in which it could be asked.",
                way_out="it is asked in the course of its own calls only",
            )
        return await client.ask(admitted.tool.name, admitted.call.arguments)


def _tool(client: str, method: str) -> Tool:
    return Tool(
        id=tool_id(Kind.CLIENT, client, method),
        kind=Kind.CLIENT,
        source=client,
        name=method,
        description=_DESCRIPTIONS[method],
        input_schema=_SCHEMA,
        risk=_RISKS.get(method, Risk.LOW),
        tags=frozenset(),
        labels=_LABELS.get(method, Labels.NONE),
        polls=True,
        timeout=_ASK_SECONDS,
        operation=True,
    )
