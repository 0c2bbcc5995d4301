"""`openfang tools batch`: many calls in one run, JSON lines in, JSON lines out."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import anyio
from anyio import CapacityLimiter, to_thread
from cyclopts import Parameter

from openfang.cli.errors import FAILED, Usage, error_body, exit_code
from openfang.cli.options import MAX_INPUT, NO_CHOICE, STDIN, Choice, File, read_object, tags
from openfang.cli.output import print_line
from openfang.cli.session import on_home
from openfang.core.bodies import result_body
from openfang.core.calls import Mode
from openfang.core.errors import OpenFangError
from openfang.core.ids import new_id
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.results import Result
    from openfang.core.session import Options, Session

_MOST_AT_ONCE = 100
_KEYS = frozenset({"tool", "arguments", "context"})
_CONTEXT = {
    "mode": "mode",
    "project_id": "project",
    "spec_hash": "spec",
    "task_id": "task",
    "blacklist": "blacklist",
}


def batch(
    file: File,
    /,
    *,
    parallel: Annotated[int, Parameter(help="How many calls are made at once.")] = 1,
    choice: Choice = NO_CHOICE,
) -> int:
    """Make many calls, all in one run; the exit code is the highest of any line's.

    Args:
        file: JSON lines of `{"tool": ..., "arguments": {...}, "context": {...}}`; `-` is
            standard input.
    """
    if not 1 <= parallel <= _MOST_AT_ONCE:
        raise Usage(f"--parallel is {parallel}.", way_out=f"a number from 1 to {_MOST_AT_ONCE}")
    options = choice.options()
    options = replace(options, run=options.run or new_id("run"))
    with ExitStack() as stack:
        lines = _opened(file, stack)
        return on_home(lambda session: _Batch(session, options, parallel).carry_out(lines))


def _opened(file: str, stack: ExitStack) -> BinaryIO:
    if file == STDIN:
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(file).open("rb"))
    except OSError as error:
        raise Usage(f"{file} cannot be read: {error.strerror}.", way_out="name a file") from None


@dataclass(slots=True)
class _Batch:
    session: Session
    options: Options
    parallel: int
    code: int = field(init=False, default=0)

    async def carry_out(self, lines: BinaryIO) -> int:
        unread = False
        try:
            await self._each(lines)
        except* BrokenPipeError:
            unread = True
        if unread:
            raise BrokenPipeError
        return self.code

    async def _each(self, lines: BinaryIO) -> None:
        slots, number = CapacityLimiter(self.parallel), 0
        async with anyio.create_task_group() as calls:
            while line := await _next(lines):
                number += 1
                if line.strip():
                    await slots.acquire_on_behalf_of(number)
                    calls.start_soon(self._one, number, line, slots)

    async def _one(self, number: int, line: bytes, slots: CapacityLimiter) -> None:
        try:
            body = await self._answer(line)
        finally:
            slots.release_on_behalf_of(number)
        print_line({"line": number, **body})

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            result = await self._call(line)
        except OpenFangError as error:
            self.code = max(self.code, exit_code(error))
            return error_body(error)
        if result.is_error:
            self.code = max(self.code, FAILED)
        return result_body(result)

    async def _call(self, line: bytes) -> Result:
        if len(line) > MAX_INPUT:
            raise Usage(f"The line has more than {MAX_INPUT} bytes.", way_out="pass less at once")
        body = read_object(line, "The line")
        _only(body, _KEYS, "the line")
        tool, arguments = body.get("tool"), body.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise Usage(
                "The line needs a tool, a string, and arguments, an object.",
                way_out="""{"tool": "system_time", "arguments": {}}""",
            )
        options = _with_context(self.options, body.get("context"))
        return await self.session.call(tool, cast("dict[str, Any]", arguments), options)


async def _next(lines: BinaryIO) -> bytes:
    """Read a line; one that is too long is read to its end, and refused by its length."""
    line = await _readline(lines)
    if len(line) <= MAX_INPUT or line.endswith(b"\n"):
        return line
    while (rest := await _readline(lines)) and not rest.endswith(b"\n"):
        pass
    return line


async def _readline(lines: BinaryIO) -> bytes:
    return await to_thread.run_sync(lines.readline, MAX_INPUT + 1, abandon_on_cancel=True)


def _with_context(options: Options, context: object) -> Options:
    if context is None:
        return options
    if not isinstance(context, dict):
        raise Usage("The context must be an object.", way_out="""{"mode": "planning"}""")
    body = cast("dict[str, object]", context)
    _only(body, frozenset(_CONTEXT), "the context")
    chosen: dict[str, Any] = {
        _CONTEXT[name]: _chosen(name, value) for name, value in body.items() if value is not None
    }
    barred = options.blacklist | chosen.pop("blacklist", frozenset())
    return replace(options, blacklist=barred, **chosen)


def _chosen(name: str, value: object) -> object:
    if name == "blacklist" and isinstance(value, list):
        return tags(tuple(str(tag) for tag in cast("list[object]", value)))
    if not isinstance(value, str) or name == "blacklist":
        kind = "a list of side effects" if name == "blacklist" else "a string"
        raise Usage(f"{name} in the context must be {kind}.", way_out="mend the line")
    return _mode(value) if name == "mode" else value


def _only(body: Mapping[str, object], known: frozenset[str], where: str) -> None:
    if unknown := sorted(body.keys() - known):
        raise Usage(
            f"There is no key {unknown[0]!r} in {where}.",
            way_out=f"one of {', '.join(sorted(known))}",
        )


def _mode(word: str) -> Mode:
    try:
        return Mode(word)
    except ValueError:
        raise Usage(f"There is no mode {word!r}.", way_out="planning or execution") from None
