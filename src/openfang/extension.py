"""For who writes an extension in Python: a file with decorated functions, one for each capability.

An extension's process loads this file by its path, under a Python of its own, and so can a test of
the author's: it needs the standard library alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from openfang.host.children.context import (
    CallError,
    Failed,
    Memory,
    PlainMemory,
    Refused,
    Result,
    Waiting,
    Working,
    call,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from openfang.host.children.context import Serving

__all__ = ["CallError", "Context", "Failed", "PlainContext", "Refused", "Result", "tool"]

Function = TypeVar("Function", bound="Callable[..., Any]")
TOOLS: Final[list[tuple[str, Callable[..., Any]]]] = []
"""What was decorated, in that order, under the names of capabilities."""


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(*, name: str) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, *, name: str = "") -> Any:
    """Let a function be a capability of the manifest: by its own name, or by the one given here.

    Its parameters are the arguments of a call, by name; one that is called `context` is handed a
    `Context`, or a `PlainContext` where the function is a plain `def`.
    """

    def decorate(function: Function) -> Function:
        TOOLS.append((name or function.__name__, function))
        return function

    return decorate if function is None else decorate(function)


class Calling(Working):
    """What a function is handed, with `await` or without. `config` is what the operator set."""

    def __init__(self, run: Serving, config: Mapping[str, Any]) -> None:
        super().__init__(run)
        self.config = config


class Context(Calling):
    """What an `async def` is handed."""

    def __init__(self, run: Serving, config: Mapping[str, Any]) -> None:
        super().__init__(run, config)
        self.memory = Memory(run)

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool, as the extension; `Refused` and `Failed` say why there is no result."""
        return await call(self._run, tool, arguments)


class PlainContext(Calling):
    """What a `def` is handed: the same, without `await`."""

    def __init__(
        self, run: Serving, config: Mapping[str, Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(run, config)
        self._wait = Waiting(loop)
        self.memory = PlainMemory(Memory(run), self._wait)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool, as the extension; `Refused` and `Failed` say why there is no result."""
        return self._wait(call(self._run, tool, arguments))
