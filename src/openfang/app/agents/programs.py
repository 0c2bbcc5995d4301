"""What runs the agents that are code, opened when the first of them is to answer."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from openfang.config.home import user_home
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from openfang.agents.code.programs import CodePrograms
    from openfang.agents.ports import Incoming
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Ended, Wish
    from openfang.core.progress import Listener
    from openfang.core.results import Result


@dataclass(slots=True)
class LaterPrograms:
    """Implements `agents.ports.Programs`. Answers are given while `run` runs."""

    home: Path
    environ: Mapping[str, str]
    opened: CodePrograms | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _there: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Wait until a program is wanted, and hold every process until the node ends."""
        await self._wanted.wait()
        self.opened = await to_thread.run_sync(_open, self.home, self.environ)
        self._there.set()
        await self.opened.run()

    async def answer(
        self,
        spec: AgentSpec,
        incoming: Incoming,
        *,
        call: Callable[[Wish], Awaitable[Result]],
        ask: Callable[[str], Awaitable[str]],
        told: Listener,
    ) -> Ended:
        """Hand a message to the agent's process and wait for its answer."""
        if self.opened is None:
            self._wanted.set()
            await self._there.wait()
        assert self.opened is not None  # noqa: S101 - it is there
        return await self.opened.answer(spec, incoming, call=call, ask=ask, told=told)

    def layers(self, name: str) -> Sequence[str]:
        """What stands between an agent's process and the machine; nothing if none runs."""
        return self.opened.layers(name) if self.opened else ()

    def retain(self, names: Collection[str]) -> None:
        """Keep these agents alone; the others finish what they are at, and end."""
        if self.opened:
            self.opened.retain(names)


def _open(home: Path, environ: Mapping[str, str]) -> CodePrograms:
    # Sandbox and processes are a tenth of a command's start, and few commands run a program.
    from openfang.agents.code.programs import CodePrograms  # noqa: PLC0415 - as above
    from openfang.app.confine import Confiner  # noqa: PLC0415 - as above

    confiner = Confiner(home, user_home(environ))
    return CodePrograms(
        confine=confiner.program,
        witness=confiner.layers,
        environments=home / "agents-env",
        environ=environ,
    )
