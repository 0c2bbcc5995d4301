"""What runs inside of an extension's process: it loads the extension's file, and serves its calls.

It is started by path under the extension's own Python: it needs the standard library alone, and
nobody imports it.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass  # noqa: TID251 - this runs where nothing of ours is
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.extension import TOOLS, Calling, Context, PlainContext
    from openfang.host.children import inside
    from openfang.host.children.context import Result
    from openfang.host.children.inside import Channel, Run
else:
    _root = Path(__file__).parents[2]
    _found = importlib.util.spec_from_file_location(
        "openfang.host.children.inside", _root / "host" / "children" / "inside.py"
    )
    sys.modules[_found.name] = inside = importlib.util.module_from_spec(_found)
    _found.loader.exec_module(inside)
    _module = inside.bring("openfang.extension", _root / "extension.py")
    TOOLS, Calling, Context = _module.TOOLS, _module.Calling, _module.Context
    PlainContext, Result = _module.PlainContext, _module.Result


@dataclass(frozen=True)
class Function:
    """One capability's function, looked at once."""

    call: Callable[..., Any]
    asynchronous: bool
    with_context: bool

    def __call__(self, arguments: Mapping[str, Any], context: Calling) -> object:
        """Hand it the arguments by name, and the context if it takes one."""
        more = {"context": context} if self.with_context else {}
        return self.call(**arguments, **more)


class Tools(inside.Server):
    """Runs the functions of an extension."""

    def __init__(
        self, channel: Channel, functions: Mapping[str, Function], config: Mapping[str, Any]
    ) -> None:
        super().__init__(channel)
        self._functions = functions
        self._config = config

    def is_asynchronous(self, run: Run) -> bool:
        """Look at the function that is called."""
        return self._functions[run.told["tool"]].asynchronous

    async def awaited(self, run: Run) -> object:
        """Wait for its answer."""
        return await cast("Awaitable[object]", self._called(run, Context(run, self._config)))

    def plain(self, run: Run, loop: asyncio.AbstractEventLoop) -> object:
        """Run it without `await`."""
        return self._called(run, PlainContext(run, self._config, loop))

    def _called(self, run: Run, context: Calling) -> object:
        return self._functions[run.told["tool"]](run.told["arguments"], context)

    def said(self, answer: object) -> dict[str, Any]:
        """Answer in words, in JSON, or in parts as they are."""
        said = _said(answer)
        size = len(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace"))
        if size > inside.LARGEST // 2:
            raise ValueError(f"The answer has {size} bytes")
        return said


def _said(answer: object) -> dict[str, Any]:
    if answer is None or isinstance(answer, str):
        return {"text": answer}
    if isinstance(answer, Result):
        more = {"structured": answer.structured, "is_error": answer.is_error}
        return {"text": None, "content": answer.content, **more}
    said: dict[str, Any] = {"text": json.dumps(answer, ensure_ascii=False)}
    return {**said, "structured": answer} if isinstance(answer, Mapping) else said


def _functions(wanted: Sequence[str], file: Path) -> dict[str, Function]:
    """Find the function of each capability; a name that is missing or double is an error."""
    names = Counter(name for name, _ in TOOLS)
    double = sorted(name for name in wanted if names[name] > 1)
    if double:
        raise TypeError(f"{file.name} has two functions for {', '.join(double)}")
    missing = sorted(name for name in wanted if not names[name])
    if missing:
        raise TypeError(f"{file.name} has no function with @tool for {', '.join(missing)}")
    return {name: _looked_at(function) for name, function in TOOLS if name in wanted}


def _looked_at(function: Callable[..., Any]) -> Function:
    return Function(
        call=function,
        asynchronous=inside.is_asynchronous(function),
        with_context="context" in inspect.signature(function).parameters,
    )


def _made(channel: Channel) -> Tools:
    told = channel.first()
    file = Path(sys.argv[1])
    inside.load(file)
    functions = _functions(told["tools"], file)
    return Tools(channel, functions, MappingProxyType(told["config"]))


if __name__ == "__main__":
    inside.serve(_made)
