"""What code in a warm child is handed, whatever it is: calls, memory, and words on the way.

The child loads this file by its path, under a Python of its own: it needs the standard library
alone.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass  # noqa: TID251 - this runs where nothing of ours is
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

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


class Working:
    """What can be told while something is being done."""

    Refused: ClassVar[type[Refused]] = Refused
    Failed: ClassVar[type[Failed]] = Failed

    def __init__(self, run: Serving) -> None:
        self._run = run

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

    def log(self, text: object) -> None:
        """Write a line into the log."""
        self._run.send("log", text=str(text))


async def call(run: Serving, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
    """Call a tool; `Refused` and `Failed` say why there is no result."""
    answer = await run.request("call", tool=tool, arguments=dict(arguments or {}))
    return Result(answer["content"], answer["structured"], answer["is_error"])


class Memory:
    """What is remembered, under keys that are granted."""

    def __init__(self, run: Serving) -> None:
        self._run = run

    async def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - any JSON
        """Recall what was remembered under a key."""
        found = await call(self._run, "memory_recall", {"key": key})
        return default if found.is_error else _value(found)

    async def set(self, key: str, value: object) -> None:
        """Remember a value under a key."""
        kept = await call(self._run, "memory_store", {"key": key, "value": value})
        if kept.is_error:
            raise Failed(kept.text)


class PlainMemory:
    """What is remembered, without `await`."""

    def __init__(self, memory: Memory, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._memory = memory
        self._wait = wait

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - any JSON
        """Recall what was remembered under a key."""
        return self._wait(self._memory.get(key, default))

    def set(self, key: str, value: object) -> None:
        """Remember a value under a key."""
        self._wait(self._memory.set(key, value))


class Waiting:
    """How a plain function waits for what the loop of its process brings."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


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
