"""`shell_exec`: one program with its arguments, by grant, with a clean environment and limits."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openfang.core.decisions import Deny
from openfang.core.errors import PolicyViolation
from openfang.core.labels import Labels
from openfang.core.results import Result, text_part
from openfang.core.tools import Effect, Risk, Sink
from openfang.core.values import dataclass
from openfang.host.command import Command
from openfang.host.process import Finished, Limits, run
from openfang.policy.commands import command_granted
from openfang.policy.grants import way_to_grant
from openfang.safety.environment import child_environment
from openfang.sources.builtin.source import Builtin, builtin_tool, object_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from openfang.core.calls import Admitted, Call
    from openfang.host.command import Confining
    from openfang.host.sandbox import Mode
    from openfang.sources.builtin.carried import Carried

_LONGEST_SHOWN = 200
_SHELL_SYNTAX = re.compile(r"[`;|<>&\n\r\0]|\$[({]")
_EXEC = builtin_tool(
    "shell_exec",
    "Run a program in your workspace: a command line without shell syntax, or a list of words.",
    object_schema(
        ["command"],
        command={
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": 100_000},
                {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1000},
            ],
            "description": "The program and its arguments.",
        },
        timeout_seconds={"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
    ),
    risk=Risk.HIGH,
    tags=frozenset({"system.exec"}),
    sink=Sink(effect=Effect.EXEC, targets=("command",)),
    labels=Labels.LOCAL_FILE,
    aliases=("bash_exec",),
    lane="shell_exec",
    at_once=8,
)


_PROCESS = Limits(
    memory=4 << 30,
    group_memory=4 << 30,
    processes=256,
    group_processes=256,
    open_files=1024,
    file_size=1 << 30,
    cpu_seconds=300,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """Which programs may run, and how far. `read` and `write` are paths besides the workspace."""

    programs: frozenset[str]
    allow_shell: bool = False
    timeout: float = 30.0
    variables: tuple[str, ...] = ()
    sandbox: Mode = "auto"
    network: bool = False
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    output: int = 100_000
    process: Limits = _PROCESS


def shell_tools(
    workspace: Callable[[str], Path], limits: ShellLimits, carried: Carried, confine: Confining
) -> Sequence[Builtin]:
    """The family of the shell; `workspace` finds the folder of a caller's space."""
    family = _Shell(workspace, limits, carried, confine)
    return [Builtin(_EXEC, family.run, family.grant)]


@dataclass(frozen=True, slots=True)
class _Shell:
    workspace: Callable[[str], Path]
    limits: ShellLimits
    carried: Carried
    confine: Confining

    async def run(self, admitted: Admitted) -> Result:
        arguments = admitted.call.arguments
        argv = self._argv(arguments["command"])
        folder = self.workspace(admitted.call.caller.space)
        wanted = arguments.get("timeout_seconds", self.limits.timeout)
        command = Command(
            name=_EXEC.name,
            argv=argv,
            environment=self._environment(admitted, folder),
            cwd=folder,
            home=folder,
            tmp=folder,
            workspace=folder,
            read=self.limits.read,
            write=self.limits.write,
            sandbox=self.limits.sandbox,
            network=self.limits.network,
            hosts=admitted.call.caller.grants.network,
            limits=self.limits.process,
            timeout=min(wanted, self.limits.timeout, admitted.timeout),
            output_limit=self.limits.output,
        )
        # Nobody knows which files a program reads.
        labels = await self.carried.by_any(folder)
        async with self.confine(command) as launch:
            finished = await run(launch)
        return replace(_result(finished, command.timeout), labels=labels)

    def grant(self, call: Call) -> Deny | None:
        """A grant covers a program by its name, or a command line by a pattern of its words."""
        try:
            argv = self._argv(call.arguments.get("command", ""))
        except PolicyViolation:
            return None  # the operator's rule, which the tool itself explains
        if command_granted(call.caller.grants.shell, argv):
            return None
        line = shlex.join(argv)[:_LONGEST_SHOWN]
        return Deny(
            f"The command {line} is not covered by the shell grants of {call.caller.id}",
            "shell_not_granted",
            way_to_grant(call.caller, "shell", f"{argv[0]} *"),
        )

    def _argv(self, command: str | Sequence[str]) -> tuple[str, ...]:
        if not isinstance(command, str):
            return self._allowed(tuple(command))
        if _SHELL_SYNTAX.search(command):
            return self._by_shell(command)
        try:
            return self._allowed(tuple(shlex.split(command)))
        except ValueError as error:
            raise _refused(
                f"The command cannot be split into words: {error}.", "pass a list"
            ) from None

    def _by_shell(self, command: str) -> tuple[str, ...]:
        if not self.limits.allow_shell:
            raise _refused(
                "The command uses shell syntax, and no shell is allowed.",
                "pass a list of words, or set tools.shell_exec.allow_shell",
            )
        return ("/bin/sh", "-c", command)

    def _allowed(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        if not argv:
            raise _refused("The command is empty.", "name a program")
        if argv[0] not in self.limits.programs and not self.limits.allow_shell:
            raise _refused(
                f"{argv[0]} is not among the programs that may run.",
                f'add it: tools.shell_exec.programs = [..., "{argv[0]}"]',
            )
        return argv

    def _environment(self, admitted: Admitted, folder: Path) -> Mapping[str, str]:
        """A clean environment, and the chain, so that a child's own calls count as deeper."""
        chain = admitted.call.chain.onward(admitted.tool.id)
        sent = {
            "TRACEPARENT": chain.traceparent,
            "OPENFANG_CHAIN": ",".join(chain.ancestors),
            "LANG": "C.UTF-8",
        }
        if chain.starry_id:
            sent["X_OPENSTARRY_TRACE_ID"] = chain.starry_id
        return child_environment(
            os.environ,
            names=[name for name in self.limits.variables if name in os.environ],
            literal=sent,
            home=str(folder),
            tmp=str(folder),
        )


def _refused(message: str, way_out: str) -> PolicyViolation:
    return PolicyViolation(message, rule="shell_exec", way_out=way_out)


def _result(finished: Finished, timeout: float) -> Result:
    stdout, stderr = (
        finished.stdout.decode(errors="replace"),
        finished.stderr.decode(errors="replace"),
    )
    ending = f"Exit code: {finished.exit_code}"
    if finished.timed_out:
        ending = f"Stopped after {timeout:g} s, with everything it had started."
    elif finished.exit_code is None:
        ending = f"Ended by signal {finished.signal}."
    lines = [ending, "STDOUT:", stdout.rstrip("\n"), "STDERR:", stderr.rstrip("\n")]
    if finished.stdout_truncated or finished.stderr_truncated:
        lines.append("[the output was longer than the limit, and was cut]")
    fields: dict[str, Any] = {
        "exit_code": finished.exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "timed_out": finished.timed_out,
    }
    failed = finished.exit_code != 0
    return Result(content=(text_part("\n".join(lines)),), structured=fields, is_error=failed)
