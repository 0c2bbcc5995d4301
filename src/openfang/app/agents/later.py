"""The agents of a node, opened when they are first wanted: most commands need none of them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import anyio

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.calls import Call


@dataclass(slots=True)
class Later:
    """Opens the agents once, in a task of its own."""

    parts: Parts
    environ: Mapping[str, str]
    agents: Agents | None = None
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _opened: anyio.Event = field(default_factory=anyio.Event)
    _resumes: bool = False

    async def run(self) -> None:
        """Wait until they are wanted, and keep them until the node ends."""
        await self._wanted.wait()
        from openfang.app.agents.running import open_agents  # noqa: PLC0415 - manifests take 0.1 s

        self.agents = open_agents(self.parts, self.environ)
        if self._resumes:
            self.agents.resumes.set()
        self._opened.set()
        await self.agents.run()

    def want(self, *, resume: bool = False) -> None:
        """Begin to open them, in the background; who stays goes on with interrupted runs."""
        self._resumes = self._resumes or resume
        self._wanted.set()

    def interrupt(self) -> None:
        """Stop all runs that are under way."""
        if self.agents is not None:
            self.agents.interrupt()

    async def go_on(self) -> None:
        """Go on with what was stopped, where that is what this process does."""
        if self.agents is not None and self._resumes:
            await self.agents.take_over()

    async def opened(self) -> Agents:
        """Open them, and wait until those of the home are there."""
        if self.agents is not None and self.agents.ready.is_set():
            return self.agents
        self.want()
        await self._opened.wait()
        assert self.agents is not None  # noqa: S101 - it was just opened
        await self.agents.ready.wait()
        return self.agents

    def memory(self, call: Call) -> str:
        """The space of what a caller remembers; an agent keeps apart who talks to it."""
        return self.agents.memory(call) if self.agents else call.caller.space

    def workspace(self, space: str) -> Path:
        """The folder of a caller's own files; an agent's manifest may name another."""
        named = self.agents.workspace(space) if self.agents else None
        return named or self.parts.home.workspace(space)

    async def see(self, call: Call, image: bytes, media_type: str, question: str) -> str | None:
        """Ask the model of the agent that calls about an image; None where it has no eyes."""
        return await self.agents.see(call, image, media_type, question) if self.agents else None
