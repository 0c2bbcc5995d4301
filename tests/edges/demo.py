"""A source for the tests of the edges: one tool for every way in which a call can end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from openfang.core.ids import Kind
from openfang.core.results import Result, error_result, text_result
from openfang.core.tools import Risk
from openfang.testing import TableSource

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOW: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
_STRICT = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}


async def echo(arguments: Mapping[str, Any]) -> Result:
    return text_result(str(arguments.get("text", "x")))


async def rain(_: Mapping[str, Any]) -> Result:
    return error_result("it is raining")


async def broken(_: Mapping[str, Any]) -> Result:
    raise RuntimeError("sk-live-of-somebody-else")


async def large(arguments: Mapping[str, Any]) -> Result:
    return text_result("x" * int(arguments["size"]))


@dataclass(slots=True)
class Demo:
    """The source, and what became of the calls that wait."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    cancelled: anyio.Event = field(default_factory=anyio.Event)
    released: anyio.Event = field(default_factory=anyio.Event)
    waiting: int = 0
    source: TableSource = field(init=False)

    def __post_init__(self) -> None:
        rows: dict[str, Any] = {
            "echo": (_LOW, echo),
            "rain": (_LOW, rain),
            "broken": (_LOW, broken),
            "large": (_LOW, large),
            "wait": (_LOW, self._wait),
            "strict": ({**_LOW, "input_schema": _STRICT}, echo),
            "odd/call": (_LOW, echo),
            "ümlaut %2F?#": (_LOW, echo),
            "off": ({**_LOW, "enabled": False}, echo),
            "write": ({"risk": Risk.MEDIUM, "tags": frozenset({"fs.write"})}, echo),
            "deploy": ({"risk": Risk.HIGH, "tags": frozenset({"cloud.resource_create"})}, echo),
            "locked": ({**_LOW, "requires_admin_token": True}, echo),
        }
        self.source = TableSource(Kind.MCP, "demo", rows)

    async def _wait(self, _: Mapping[str, Any]) -> Result:
        self.waiting += 1
        self.begun.set()
        try:
            await self.released.wait()
        except BaseException:
            self.cancelled.set()
            raise
        finally:
            self.waiting -= 1
        return text_result("released")
