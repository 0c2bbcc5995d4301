"""Two tools in the place of many: one finds tools by words, the other calls what was found.

To search is a call of `builtin:search_tools`, which takes the path like any other; who may come in
may search, because nothing is found that is not offered. `call_tool` is a call of the tool itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import orjson
from anyio import to_thread

from openfang.app.offering.views import View
from openfang.core.errors import InvalidArguments
from openfang.core.ids import Kind, tool_id
from openfang.core.results import Result, text_result
from openfang.core.tools import Risk, Tool, Trust
from openfang.core.values import dataclass
from openfang.edges.mcp.ports import Offered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openfang.core.calls import Admitted, Caller

NAME: Final = "search"
_USUAL: Final = 5
_MOST: Final = 20
_SEARCH: Final = Tool(
    id=tool_id(Kind.BUILTIN, "search_tools"),
    kind=Kind.BUILTIN,
    source=NAME,
    name="search_tools",
    description="Find tools by what they are for: the best fits, with the arguments they take.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1000,
                "description": "What the tool should do, in a few words.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MOST,
                "default": _USUAL,
                "description": "How many tools to show at most.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True},
    risk=Risk.LOW,
    tags=frozenset(),
    trust=Trust.HIGH,
    idempotent=True,
    operation=True,
)
_CALL: Final = Tool(
    id=tool_id(Kind.BUILTIN, "call_tool"),
    kind=Kind.BUILTIN,
    source=NAME,
    name="call_tool",
    description="Call a tool that search_tools has found.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "The tool's name."},
            "arguments": {"type": "object", "description": "What the tool takes."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    operation=True,
)
SEARCH, CALL = (Offered(name=t.name, tool=t, description=t.description) for t in (_SEARCH, _CALL))
TWO: Final = View((CALL, SEARCH))


@dataclass(frozen=True, slots=True)
class Searching:
    """The selection of somebody who searches: the search itself, and where it looks."""

    view: View

    def holds(self, tool: Tool) -> bool:
        """Whether it is the search."""
        return tool.id == _SEARCH.id


def searcher(caller: Caller, view: View) -> Caller:
    """Let a caller search among what is offered to it, whatever else it may do."""
    grants = replace(caller.grants, tools=(*caller.grants.tools, _SEARCH.id))
    return replace(caller, grants=grants, within=Searching(view))


def chosen(arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Read what `call_tool` is to call."""
    name, given = arguments.get("name"), arguments.get("arguments", {})
    if not isinstance(name, str) or not name or not isinstance(given, dict):
        raise InvalidArguments(
            "call_tool takes the name of a tool, and its arguments as an object.",
            way_out="search_tools shows both",
        )
    return name, cast("dict[str, Any]", given)


class SearchSource:
    """Answers searches. Who comes without a selection searches all that it can see."""

    name = NAME

    def __init__(
        self,
        check: Callable[[Admitted], None],
        whole: Callable[[Caller], View],
        most: Callable[[], int],
    ) -> None:
        self._check = check
        self._whole = whole
        self._most = most

    def tools(self) -> Sequence[Tool]:
        """Offer the search."""
        return (_SEARCH,)

    async def execute(self, admitted: Admitted) -> Result:
        """Search. The words of many tools take a while to read, the first time."""
        self._check(admitted)
        caller, arguments = admitted.call.caller, admitted.call.arguments
        view = caller.within.view if isinstance(caller.within, Searching) else self._whole(caller)
        limit = int(arguments.get("limit", _USUAL))
        found = await to_thread.run_sync(view.search, str(arguments["query"]), limit)
        return self._shown(found)

    def _shown(self, found: Sequence[Offered]) -> Result:
        """Show as many as can be read whole."""
        entries = [_entry(one) for one in found]
        while len(entries) > 1 and len(orjson.dumps(entries)) > self._most():
            del entries[-1]
        text = orjson.dumps(entries).decode() if entries else "No tool fits. Try other words."
        return text_result(text, structured={"tools": entries})


def _entry(one: Offered) -> dict[str, Any]:
    return {
        "name": one.name,
        "description": one.description,
        "inputSchema": one.tool.input_schema,
    }
