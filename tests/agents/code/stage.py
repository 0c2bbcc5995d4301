"""A home with code agents, started and confined as the product does it."""

from __future__ import annotations

import logging
import os
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from openfang.agents.code.programs import CodePrograms
from openfang.agents.loop import Budget
from openfang.agents.ports import Incoming
from openfang.agents.spec import AgentSpec, Program
from openfang.app.confine import Confiner
from openfang.core.errors import CallRefused, UnknownTool
from openfang.core.results import text_result
from openfang.host.backends import available

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from pathlib import Path

    from openfang.core.agents import Ended, Wish
    from openfang.core.progress import Told
    from openfang.core.results import Result
    from openfang.host.backends import Available

PATIENCE = 60.0


@cache
def found() -> Available:
    """What this machine has to confine with; it is tried once."""
    return available()


class Log(logging.Handler):
    """Keeps what is logged of agents, and can be waited on."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._news = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self._news.set()
        self._news = anyio.Event()

    async def says(self, words: str) -> str:
        """Wait for a line with these words."""
        with anyio.fail_after(PATIENCE):
            while True:
                for line in self.lines:
                    if words in line:
                        return line
                await self._news.wait()


@contextmanager
def logged() -> Generator[Log]:
    """Listen to the log."""
    log, logger = Log(), logging.getLogger("openfang.agents")
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    try:
        yield log
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)


async def echo_tool(wish: Wish) -> Result:
    """The only tool of the stage: it says what it was told."""
    if wish.tool != "echo":
        raise UnknownTool(wish.tool)
    return text_result(str(wish.arguments.get("text", "")), structured=dict(wish.arguments))


async def nobody(question: str) -> str:
    """Answer for a person who is not there."""
    raise CallRefused(question, rule="nobody_to_ask")


@dataclass(slots=True)
class Stage:
    """One home, and the agents in it."""

    home: Path
    programs: CodePrograms
    heard: list[Told] = field(default_factory=list["Told"])
    _news: anyio.Event = field(default_factory=anyio.Event)

    def told(self, heard: Told) -> None:
        """Listen to every run."""
        self.heard.append(heard)
        self._news.set()
        self._news = anyio.Event()

    async def hears(self, heard: Told) -> None:
        """Wait until a run has said this."""
        with anyio.fail_after(PATIENCE):
            while heard not in self.heard:
                await self._news.wait()

    def agent(
        self, source: str, *, name: str = "tester", budget: Budget | None = None, **program: Any
    ) -> AgentSpec:
        """Write an agent's file."""
        folder = self.home / "agents" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "agent.py").write_text(dedent(source))
        return AgentSpec(
            name=name,
            does=Program(file=folder / "agent.py", **program),
            workspace=self.home / "workspaces" / name,
            budget=budget or Budget(),
        )

    async def say(
        self,
        spec: AgentSpec,
        message: str = "",
        *,
        call: Callable[[Wish], Awaitable[Result]] = echo_tool,
        ask: Callable[[str], Awaitable[str]] | None = None,
        **incoming: Any,
    ) -> Ended:
        """Say something to an agent, and wait for its answer."""
        said = Incoming(message=message, session="s1", run="run-1", **incoming)
        with anyio.fail_after(PATIENCE):
            return await self.programs.answer(
                spec, said, call=call, ask=ask or nobody, told=self.told
            )

    async def answer(self, spec: AgentSpec, message: str = "") -> str:
        """The same, of which the words alone count."""
        return (await self.say(spec, message)).answer


@asynccontextmanager
async def stage(root: Path, *, search: str = os.environ["PATH"]) -> AsyncGenerator[Stage]:
    """Hold the agents of a home; `search` is the PATH by which installers are found."""
    home, user = root / "openfang", root / "user"
    for folder in (home, user):
        folder.mkdir()
    programs = CodePrograms(
        confine=Confiner(home, user, await to_thread.run_sync(found)).program,
        environments=home / "agents-env",
        environ={**os.environ, "PATH": search},
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(programs.run)
        yield Stage(home, programs)
        tasks.cancel_scope.cancel()
