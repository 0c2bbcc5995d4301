"""What runs inside of a code agent's process: it loads the agent's file, and serves its runs.

It is started by path under the agent's own Python: it needs the standard library alone, and nobody
imports it.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import asyncio

    from openfang.agents.code.context import Context, PlainContext, Rejected, Said
    from openfang.host.children import inside
    from openfang.host.children.inside import Channel, Run
else:
    _shared = Path(__file__).parents[2] / "host" / "children" / "inside.py"
    _found = importlib.util.spec_from_file_location("openfang.host.children.inside", _shared)
    sys.modules[_found.name] = inside = importlib.util.module_from_spec(_found)
    _found.loader.exec_module(inside)
    _context = inside.bring("openfang.agents.code.context", Path(__file__).with_name("context.py"))
    Context, PlainContext, Said = _context.Context, _context.PlainContext, _context.Said
    Rejected = _context.Rejected


class Agent(inside.Server):
    """Runs the agent's one function."""

    def __init__(self, channel: Channel, function: Callable[..., Any]) -> None:
        super().__init__(channel)
        self._function = function
        self._with_context = _takes_two(function)
        self._asynchronous = inside.is_asynchronous(function)

    def is_asynchronous(self, run: Run) -> bool:
        """It is always the same function."""
        del run
        return self._asynchronous

    async def awaited(self, run: Run) -> object:
        """Wait for its answer, or for one piece of it after the other."""
        context = Context(run)
        answer = self._called(run, context)
        if isinstance(answer, AsyncGenerator):
            async for piece in cast("AsyncGenerator[object]", answer):
                context.stream(str(piece))
            return None
        return await cast("Awaitable[object]", answer)

    def plain(self, run: Run, loop: asyncio.AbstractEventLoop) -> object:
        """Run it without `await`."""
        return self._called(run, PlainContext(run, loop))

    def _called(self, run: Run, context: Said) -> object:
        message = run.told["message"]
        return self._function(message, context) if self._with_context else self._function(message)

    def said(self, answer: object) -> dict[str, Any]:
        """Answer in words."""
        text = _text(answer)
        if text and len(text.encode("utf-8", "replace")) > inside.LARGEST // 2:
            raise ValueError(f"The answer has {len(text)} characters")
        return {"text": text}

    def refused(self, error: BaseException) -> tuple[str, dict[str, Any]] | None:
        """Know a refusal when it sees one."""
        if isinstance(error, Rejected):
            return "reject", {"reason": str(error)[: inside.LONGEST_REASON]}
        return None


def _takes_two(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return True
    return (
        sum(one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD} for one in parameters) > 1
    )


def _text(answer: object) -> str | None:
    """Put an answer into words; without one, what was streamed is the answer."""
    if answer is None or isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping | list | tuple | bool | int | float):
        return json.dumps(answer, ensure_ascii=False, default=str)
    return str(answer)


def _made(channel: Channel) -> Agent:
    file, name = Path(sys.argv[1]), sys.argv[2]
    found = getattr(inside.load(file), name, None)
    if not callable(found):
        raise TypeError(f"{file.name} has no function {name}")
    return Agent(channel, found)


if __name__ == "__main__":
    inside.serve(_made)
