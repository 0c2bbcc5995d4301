"""What the sandbox adds to a start: from the wish to have a program to its first word.

Plain and sandboxed starts of one tiny program take turns, so that a busy moment hits all alike.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from statistics import median
from typing import TYPE_CHECKING, Literal

from bench.figures import Figure, Stopwatch
from openfang.app.confine import Confiner
from openfang.host.process import Child, Launch, started
from openfang.safety.environment import DEFAULT_PATH
from openfang.sources.mcp.spec import ServerSpec, Stdio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ROUNDS = 100


class _Speaker(Child):
    def __init__(self) -> None:
        super().__init__()
        self.spoke = asyncio.Event()

    def received(self, fd: int, data: bytes) -> None:
        del fd, data
        self.spoke.set()


def _server(own: Path, sandbox: Literal["off", "required"], *, network: bool) -> ServerSpec:
    environment = {"PATH": DEFAULT_PATH, "HOME": str(own / "home"), "TMPDIR": str(own / "tmp")}
    reached = Stdio(
        argv=("echo", "here"),
        cwd=own,
        environment=environment,
        sandbox=sandbox,
        network=network,
        memory=4 << 30,
        processes=1024,
    )
    return ServerSpec(name=own.name, reached=reached)


async def _start(confiner: Confiner, spec: ServerSpec) -> float:
    """Milliseconds until the program has spoken."""
    async with AsyncExitStack() as stack:
        with Stopwatch() as watch:
            ready = await confiner.prepared(spec, stack)
            reached = ready.spec.reached
            assert isinstance(reached, Stdio)
            assert isinstance(reached.launch, Launch)
            child = await stack.enter_async_context(started(reached.launch, _Speaker()))
            await child.spoke.wait()
    return watch.seconds * 1000


async def figures(folder: Path) -> Sequence[Figure]:
    home = folder / "sandbox"
    servers = home / "servers"
    confiner = Confiner(home, folder)
    kinds = {
        "plain": _server(servers / "plain", "off", network=False),
        "closed": _server(servers / "closed", "required", network=False),
        "open": _server(servers / "open", "required", network=True),
    }
    times = {name: list[float]() for name in kinds}
    for turn in range(_ROUNDS + 2):
        for name, spec in kinds.items():
            took = await _start(confiner, spec)
            if turn > 1:  # the machine is tried once, and a user is made once
                times[name].append(took)
    plain, closed, opened = (median(times[name]) for name in kinds)
    beside = f"{plain:.1f} ms plain, {{:.1f}} ms sandboxed, median of {_ROUNDS}"
    return [
        Figure(
            "a sandboxed start takes longer by",
            closed - plain,
            "ms",
            10.0,
            beside=beside.format(closed),
        ),
        Figure(
            "with its guarded way out by", opened - plain, "ms", 12.0, beside=beside.format(opened)
        ),
    ]
