"""Whoever sent a task, as the agent can ask them: a question is what the task waits for."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from openfang.core.clients import ELICITATION
from openfang.core.results import Result, error_result
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openfang.core.labels import Labels

    Filled: TypeAlias = tuple[Mapping[str, Any], Labels]
_CAPABILITIES: Final[Mapping[str, Any]] = {"elicitation": {"form": {}}}
_NO_SUCH_METHOD: Final = -32601
_NO_SUCH_MODE: Final = -32602


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClient:
    """The caller of one task; its id is the `connection`. `put` has a form filled in."""

    key: str
    connection: str
    put: Callable[[Mapping[str, Any]], Awaitable[Filled]]
    capabilities: Mapping[str, Any] = field(default_factory=lambda: _CAPABILITIES)
    level: str = ""
    has_person: bool = False
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        """Put a form; one question waits for the other."""
        del name
        if method != ELICITATION:
            return _fault(_NO_SUCH_METHOD, f"Who sent the task cannot be asked for {method}.")
        if params.get("mode", "form") != "form":
            return _fault(_NO_SUCH_MODE, "Who sent the task is shown forms, and no addresses.")
        async with self._turn:
            content, labels = await self.put(params)
        return Result(structured={"action": "accept", "content": content}, labels=labels)

    def together(self, count: int) -> Callable[[], None]:
        """Announce nothing: each is put by itself."""
        del count
        return _nothing

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell nothing: what is said on the way comes by the progress of the call."""
        del method, params


def _nothing() -> None:
    """No question waits for another to be put."""


def _fault(code: int, message: str) -> Result:
    fault = {"code": code, "message": message, "data": None}
    return Result(content=error_result(message).content, is_error=True, fault=fault)
