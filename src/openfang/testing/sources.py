"""Sources made of a table, and tools as a foreign server would offer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from openfang.core.errors import SourceFailed
from openfang.core.ids import Kind
from openfang.core.results import Result, text_result
from openfang.core.tools import Tool, Trust
from openfang.registry.classify import ForeignTool, Overrides, classified_tool, classify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.core.calls import Admitted

Function: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Result | str]]
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def foreign_tool(  # noqa: PLR0913 - what a server says of a tool, one argument each
    server: str,
    name: str,
    description: str = "",
    *,
    schema: Mapping[str, Any] = _ANY_OBJECT,
    annotations: Mapping[str, Any] | None = None,
    trust: Trust = Trust.MEDIUM,
    overrides: Overrides | None = None,
    **facts: Any,  # noqa: ANN401 - Tool's own fields
) -> Tool:
    """Classify a tool as if an MCP server had listed it; `facts` are set on it afterwards."""
    foreign = ForeignTool(
        kind=Kind.MCP,
        source=server,
        name=name,
        description=description,
        input_schema=schema,
        annotations=annotations or {},
    )
    verdict = classify(foreign, trust=trust, overrides=overrides)
    return replace(classified_tool(foreign, verdict, trust=trust), **facts)


class TableSource:
    """A source whose tools and functions stand in a table, by name.

    A row holds the tool, or only its facts (`{"risk": Risk.LOW}`), and the function that gets the
    arguments. `check` is the pipeline's (`parts.pipeline.stamper.check`); `open_test_app` hands it
    in, and until somebody does, every call is refused.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        table: Mapping[str, tuple[Tool | Mapping[str, Any], Function]],
        check: Callable[[Admitted], None] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.check = check or _nobody
        self.calls: list[Admitted] = []
        self._rows: dict[str, tuple[Tool, Function]] = {}
        for tool_name, (facts, function) in table.items():
            self.put(tool_name, facts, function)

    def put(self, name: str, facts: Tool | Mapping[str, Any], function: Function) -> None:
        """Add a row, or change one; the registry sees it at the next `parts.add` or refresh."""
        tool = facts if isinstance(facts, Tool) else self._tool(name, facts)
        self._rows[tool.id] = (tool, function)

    @property
    def reached(self) -> int:
        """How many calls came this far."""
        return len(self.calls)

    def tools(self) -> Sequence[Tool]:
        """List the tools of the table."""
        return [tool for tool, _ in self._rows.values()]

    async def execute(self, admitted: Admitted) -> Result:
        """Check the stamp, count the call, run its function."""
        self.check(admitted)
        self.calls.append(admitted)
        answer = await self._rows[admitted.tool.id][1](admitted.call.arguments)
        return text_result(answer) if isinstance(answer, str) else answer

    def _tool(self, name: str, facts: Mapping[str, Any]) -> Tool:
        foreign = ForeignTool(kind=self.kind, source=self.name, name=name)
        stated: dict[str, Any] = {"input_schema": _ANY_OBJECT, **facts}
        return Tool(id=foreign.id, kind=self.kind, source=self.name, name=name, **stated)


def _nobody(admitted: Admitted) -> None:
    raise SourceFailed(f"The source of {admitted.tool.id} was not taken in by any pipeline.")
