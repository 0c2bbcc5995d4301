"""What a code agent is handed: `async def run(message, context: Context)`, or the same without.

For type hints an agent can import these names; it need not. The agent's process loads this file by
its path, under the agent's own Python: it needs the standard library alone.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

T = TypeVar("T")


class CallError(Exception):
    """A call that brought no result; `reason` says why, `way_out` what would help."""

    def __init__(self, reason: str, way_out: str = "", code: str = "") -> None:
        super().__init__(f"{reason} Way out: {way_out}." if way_out else reason)
        self.reason = reason
        self.way_out = way_out
        self.code = code


class Refused(CallError):  # noqa: N818 - it reads as what it is
    """Nothing ran."""


class Failed(CallError):  # noqa: N818 - as above
    """It ran, and did not end well."""


class Rejected(BaseException):
    """The agent will not do what it was asked; no `except Exception` stands in its way."""


@dataclass(frozen=True)
class Result:
    """What a call brought back."""

    content: list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text parts, joined."""
        parts = (part.get("text") for part in self.content if part.get("type") == "text")
        return "\n".join(text for text in parts if isinstance(text, str))


class Serving(Protocol):
    """The run that a context belongs to."""

    told: dict[str, Any]

    def send(self, say: str, /, **fields: object) -> None:
        """Tell whoever is listening."""
        ...

    async def request(self, say: str, /, **fields: object) -> dict[str, Any]:
        """Ask for something, and wait for it."""
        ...


class Said:
    """What came with the message, and what can be told while it is being answered."""

    Refused: ClassVar[type[Refused]] = Refused
    Failed: ClassVar[type[Failed]] = Failed

    def __init__(self, run: Serving) -> None:
        told = run.told
        self._run = run
        self.message_id: str = told["message_id"]
        self.session: str = told["session"]
        self.parts: Sequence[Mapping[str, Any]] = told["parts"]
        self.metadata: Mapping[str, Any] = told["metadata"]
        self.history: Sequence[Mapping[str, Any]] = told["history"]

    def stream(self, text: str) -> None:
        """Say a piece of the answer."""
        self._run.send("stream", text=str(text))

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Say how far it has got."""
        self._run.send("progress", done=done, total=total, message=str(message))

    def artifact(
        self,
        name: str,
        content: object = None,
        mime: str = "",
        *,
        parts: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Hand over something that was made: text, bytes, or data; or parts as they are."""
        made = parts if parts is not None else [_part(name, content, mime)]
        self._run.send("artifact", name=str(name), parts=list(made))

    def reject(self, reason: str) -> NoReturn:
        """End the run: this is nothing for this agent."""
        raise Rejected(reason)

    def log(self, text: object) -> None:
        """Write a line into the log."""
        self._run.send("log", text=str(text))


class Context(Said):
    """What `async def run(message, context)` is handed."""

    def __init__(self, run: Serving) -> None:
        super().__init__(run)
        self.memory = Memory(self)

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool, as the agent; `Refused` and `Failed` say why there is no result."""
        answer = await self._run.request("call", tool=tool, arguments=dict(arguments or {}))
        return Result(answer["content"], answer["structured"], answer["is_error"])

    async def ask(self, question: str) -> str:
        """Ask the person, and wait for the answer."""
        answer = await self._run.request("ask", question=str(question))
        return str(answer["text"])


class Memory:
    """What the agent remembers, under keys that its manifest grants."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - any JSON
        """Recall what was remembered under a key."""
        found = await self._context.call("memory_recall", {"key": key})
        return default if found.is_error else _value(found)

    async def set(self, key: str, value: object) -> None:
        """Remember a value under a key."""
        kept = await self._context.call("memory_store", {"key": key, "value": value})
        if kept.is_error:
            raise Failed(kept.text)


class PlainContext(Said):
    """What `def run(message, context)` is handed: the same, without `await`."""

    def __init__(self, run: Serving, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(run)
        self._context = Context(run)
        self._loop = loop
        self.memory = PlainMemory(self._context.memory, self._wait)

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """Call a tool, as the agent; `Refused` and `Failed` say why there is no result."""
        return self._wait(self._context.call(tool, arguments))

    def ask(self, question: str) -> str:
        """Ask the person, and wait for the answer."""
        return self._wait(self._context.ask(question))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class PlainMemory:
    """What the agent remembers, without `await`."""

    def __init__(self, memory: Memory, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._memory = memory
        self._wait = wait

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - any JSON
        """Recall what was remembered under a key."""
        return self._wait(self._memory.get(key, default))

    def set(self, key: str, value: object) -> None:
        """Remember a value under a key."""
        self._wait(self._memory.set(key, value))


def _value(found: Result) -> object:
    match found.structured:
        case {"value": value}:
            return value
        case _:
            return found.text


def _part(name: str, content: object, mime: str) -> dict[str, Any]:
    if isinstance(content, str):
        return {"type": "text", "text": content, **({"mime_type": mime} if mime else {})}
    if isinstance(content, bytes | bytearray):
        data = base64.b64encode(content).decode()
        mime = mime or "application/octet-stream"
        return {"type": "file", "name": str(name), "mime_type": mime, "data": data}
    return {"type": "data", "data": content}
