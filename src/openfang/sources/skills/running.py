"""Running a program of a skill: once a call, from an argument list, confined, and ended.

What a caller sends is data: it comes on standard input, or as arguments behind the name of a file.
No shell ever reads it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.errors import CallTimedOut
from openfang.core.results import Result, error_result, text_part
from openfang.core.values import dataclass
from openfang.host.command import Command
from openfang.host.process import Limits, run
from openfang.safety.environment import child_environment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from openfang.core.calls import Admitted
    from openfang.host.command import Confining
    from openfang.host.process import Finished
    from openfang.sources.skills.spec import Interpreter, SkillSpec

_OUTPUT: Final = 1 << 20
_LAST_WORDS: Final = 2_000
_MEMORY: Final = 1 << 30
_PROCESSES: Final = 256
# Its own limit on memory: it reserves more addresses than it will ever use.
_NODE: Final = ("node", "--max-old-space-size=512")
_PYTHON: Final = (sys.executable, "-E", "-s", "-B", "-X", "utf8")
_INTERPRETERS: Final[Mapping[Interpreter, tuple[str, ...]]] = {
    "python": _PYTHON,
    "node": _NODE,
    "shell": ("/bin/sh",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One program to run: a file of the skill's, its arguments, and what it reads."""

    interpreter: Interpreter
    file: str
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    cwd: Path


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the programs of one skill; `variables` finds the values of its settings."""

    spec: SkillSpec
    confine: Confining
    variables: Callable[[], Awaitable[Mapping[str, str]]]

    async def run(self, admitted: Admitted, errand: Errand) -> Finished:
        """Run it to its end, or to that of the time it has."""
        spec = self.spec
        command = Command(
            name=spec.id,
            argv=(
                *_INTERPRETERS[errand.interpreter],
                str(spec.folder / errand.file),
                *errand.arguments,
            ),
            environment=await self._environment(admitted),
            cwd=errand.cwd,
            home=spec.own / "home",
            tmp=spec.own / "tmp",
            workspace=spec.workspace,
            own=(spec.folder,),
            read=spec.read,
            write=spec.write,
            sandbox=spec.sandbox,
            network=spec.network,
            limits=_limits(errand.interpreter, spec.timeout),
            stdin=errand.stdin,
            timeout=min(spec.timeout, admitted.timeout),
            output_limit=_OUTPUT,
        )
        async with self.confine(command) as launch:
            finished = await run(launch)
        if finished.timed_out:
            raise CallTimedOut(
                f"{errand.file} of the skill {spec.name} did not end within {command.timeout:g} s.",
                way_out=f"skills.{spec.name}.timeout_secs raises the limit",
            )
        return finished

    async def _environment(self, admitted: Admitted) -> dict[str, str]:
        """Nothing of ours: a search path, its folders, its settings, and the chain of calls."""
        spec, chain = self.spec, admitted.call.chain.onward(admitted.tool.id)
        home, tmp = str(spec.own / "home"), str(spec.own / "tmp")
        return {
            **await self.variables(),
            **child_environment(os.environ, home=home, tmp=tmp),
            "LANG": "C.UTF-8",
            "PYTHONIOENCODING": "utf-8",
            "OPENFANG_SKILL": str(spec.folder),
            "OPENFANG_WORKSPACE": str(spec.workspace),
            "TRACEPARENT": chain.traceparent,
            "OPENFANG_CHAIN": ",".join(chain.ancestors),
        }


def _limits(interpreter: Interpreter, seconds: float) -> Limits:
    return Limits(
        memory=None if interpreter == "node" else _MEMORY,
        group_memory=_MEMORY,
        processes=_PROCESSES,
        group_processes=_PROCESSES,
        open_files=1024,
        file_size=1 << 30,
        cpu_seconds=int(seconds) + 1,
    )


def answer_of(finished: Finished) -> Result:
    """Read what a tool wrote: JSON as such, anything else as it is; an error by its exit code."""
    text = finished.stdout.decode(errors="replace").strip()
    if finished.exit_code != 0:
        return _failed(finished, text)
    if finished.stdout_truncated:
        return error_result(f"{text}\n[the answer was longer than the limit, and was cut]")
    value = _json(text)
    said = value.get("error") if value and len(value) == 1 else None
    if isinstance(said, str):
        return error_result(said)
    return Result(content=(text_part(text),), structured=value)


def _failed(finished: Finished, text: str) -> Result:
    value = _json(text)
    said = value.get("error") if value else None
    last = finished.stderr.decode(errors="replace").strip()[-_LAST_WORDS:]
    how = f"exit code {finished.exit_code}"
    if finished.exit_code is None:
        how = f"signal {finished.signal}"
    words = said if isinstance(said, str) else last or text[-_LAST_WORDS:]
    return error_result(f"The program ended with {how}: {words}".rstrip(": "))


def _json(text: str) -> dict[str, Any] | None:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def output_of(finished: Finished) -> Result:
    """Show what a script wrote, and how it ended."""
    stdout = finished.stdout.decode(errors="replace").rstrip("\n")
    stderr = finished.stderr.decode(errors="replace").rstrip("\n")
    code = finished.exit_code
    lines = [stdout]
    if stderr:
        lines += ["STDERR:", stderr]
    if code != 0:
        lines.append(f"Exit code: {code}" if code is not None else f"Signal: {finished.signal}")
    if finished.stdout_truncated or finished.stderr_truncated:
        lines.append("[the output was longer than the limit, and was cut]")
    fields = {"exit_code": code, "stdout": stdout, "stderr": stderr}
    text = "\n".join(lines)
    return Result(content=(text_part(text),), structured=fields, is_error=code != 0)
