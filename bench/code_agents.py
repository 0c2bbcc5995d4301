"""What a code agent costs us: a warm answer, one with a call on the way, and a start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio

from bench.figures import Figure, Stopwatch, cpu_per_async
from openfang.agents.code.programs import CodePrograms
from openfang.agents.ports import Incoming
from openfang.agents.spec import AgentSpec, Program
from openfang.app.confine import Confiner
from openfang.core.errors import CallRefused
from openfang.core.results import text_result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from openfang.core.agents import Wish
    from openfang.core.progress import Told
    from openfang.core.results import Result

_ANSWERS = 1000
_ECHO = "async def run(message, context):\n    return message\n"
_CALLS = "async def run(message, context):\n    return (await context.call('echo')).text\n"


def _agent(home: Path, name: str, source: str) -> AgentSpec:
    folder = home / "agents" / name
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(source)
    workspace = home / "workspaces" / name
    return AgentSpec(name=name, does=Program(file=folder / "agent.py"), workspace=workspace)


async def _echo(wish: Wish) -> Result:
    return text_result(wish.tool)


async def _nobody(question: str) -> str:
    raise CallRefused(question, rule="nobody_to_ask")


def _silent(told: Told) -> None:
    del told


async def figures(folder: Path) -> Sequence[Figure]:
    home = folder / "code-agents"
    home.mkdir()
    programs = CodePrograms(
        confine=Confiner(home, folder).program,
        environments=home / "agents-env",
        environ=os.environ,
    )
    measured: Sequence[Figure] = ()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(programs.run)
        measured = await _measured(programs, home)
        tasks.cancel_scope.cancel()
    return measured


async def _measured(programs: CodePrograms, home: Path) -> Sequence[Figure]:
    agents = {name: _agent(home, name, source) for name, source in (("a", _ECHO), ("b", _CALLS))}
    said = Incoming(message="hello", session="s", run="r")

    async def ask(name: str) -> None:
        await programs.answer(agents[name], said, call=_echo, ask=_nobody, told=_silent)

    await ask("b")  # the machine's sandbox is tried once
    with Stopwatch() as start:
        await ask("a")
    with Stopwatch() as wall:
        plain = await cpu_per_async(_ANSWERS, lambda: ask("a"))
    calling = await cpu_per_async(_ANSWERS, lambda: ask("b"))
    took = f"{wall.seconds / _ANSWERS / 3 * 1e3:.2f} ms of time"
    return [
        Figure("code agent: a warm answer, our CPU", plain / 1000, "ms", 0.6, beside=took),
        Figure("code agent: with one call, our CPU", calling / 1000, "ms", 1.0),
        Figure("code agent: from start to first answer", start.seconds, "s", 1.0),
    ]
