"""The source of the built-in tools: families in, one catalogue out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.core.errors import OpenFangError
from openfang.core.ids import Kind, tool_id
from openfang.core.results import Result, error_result
from openfang.core.tools import Tool, Trust
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from openfang.core.calls import Admitted, Call
    from openfang.core.decisions import Deny

NAME = "builtin"


@dataclass(frozen=True, slots=True)
class Builtin:
    """A tool, the function that does it, and what its arguments need of the caller's grants."""

    tool: Tool
    run: Callable[[Admitted], Awaitable[Result]]
    grant: Callable[[Call], Deny | None] | None = None


def builtin_tool(name: str, description: str, schema: Mapping[str, Any], **facts: Any) -> Tool:  # noqa: ANN401 - Tool's own fields
    """Declare a built-in: its classification is a declaration, not an inference."""
    return Tool(
        id=tool_id(Kind.BUILTIN, name),
        kind=Kind.BUILTIN,
        source=NAME,
        name=name,
        wire_name=name,
        description=description,
        input_schema=schema,
        trust=Trust.HIGH,
        **facts,
    )


def object_schema(required: Sequence[str] = (), **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments: these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


class BuiltinSource:
    """Runs built-ins. An error that a person can act on is an answer, not a failure."""

    name = NAME

    def __init__(
        self, families: Iterable[Sequence[Builtin]], check: Callable[[Admitted], None]
    ) -> None:
        self._check = check
        self._builtins = {item.tool.id: item for family in families for item in family}

    def tools(self) -> Sequence[Tool]:
        """List every built-in."""
        return [item.tool for item in self._builtins.values()]

    @property
    def checks(self) -> Mapping[str, Callable[[Call], Deny | None]]:
        """What the gate of grants asks, by tool."""
        return {item.tool.id: item.grant for item in self._builtins.values() if item.grant}

    async def execute(self, admitted: Admitted) -> Result:
        """Run one that carries its stamp."""
        self._check(admitted)
        try:
            return await self._builtins[admitted.tool.id].run(admitted)
        except OpenFangError as error:
            advice = f" ({error.way_out})" if error.way_out else ""
            return error_result(f"Error: {error.message}{advice}")
