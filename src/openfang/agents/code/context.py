"""What a code agent is handed: `async def run(message, context: Context)`, or the same without.

For type hints an agent can import these names; it need not. The agent's process loads this file by
its path, under the agent's own Python: it needs the standard library alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

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
    from collections.abc import Mapping, Sequence

    from openfang.host.children.context import Serving

__all__ = ["CallError", "Context", "Failed", "PlainContext", "Refused", "Rejected", "Result"]


class Rejected(BaseException):
    """The agent will not do what it was asked; no `except Exception` stands in its way."""


class Said(Working):
    """What came with the message, and what can be told while it is being answered."""

    def __init__(self, run: Serving) -> None:
        super().__init__(run)
        told = run.told
        self.message_id: str = told["message_id"]
        self.session: str = told["session"]
        self.parts: Sequence[Mapping[str, Any]] = told["parts"]
        self.metadata: Mapping[str, Any] = told["metadata"]
        self.history: Sequence[Mapping[str, Any]] = told["history"]

    def stream(self, text: str) -> None:
        """Say a piece of the answer."""
        self._run.send("stream", text=str(text))

    def reject(self, reason: str) -> NoReturn:
        """End the run: this is nothing for this agent."""
        raise Rejected(reason)


class Context(Said):
    """What `async def run(message, context)` is handed."""

    def __init__(self, run: Serving) -> None:
        super().__init__(run)
        self.memory = Memory(run)

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool, as the agent; `Refused` and `Failed` say why there is no result."""
        return await call(self._run, tool, arguments)

    async def ask(self, question: str) -> str:
        """Ask the person, and wait for the answer."""
        answer = await self._run.request("ask", question=str(question))
        return str(answer["text"])


class PlainContext(Said):
    """What `def run(message, context)` is handed: the same, without `await`."""

    def __init__(self, run: Serving, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(run)
        self._context = Context(run)
        self._wait = Waiting(loop)
        self.memory = PlainMemory(self._context.memory, self._wait)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool, as the agent; `Refused` and `Failed` say why there is no result."""
        return self._wait(self._context.call(tool, arguments))

    def ask(self, question: str) -> str:
        """Ask the person, and wait for the answer."""
        return self._wait(self._context.ask(question))
