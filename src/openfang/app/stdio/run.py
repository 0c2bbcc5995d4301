"""`openfang mcp`: an MCP server on standard input and output, by whoever serves the home.

Over a daemon this process is a pipe: neither the pipeline nor any library of the protocol is
imported. What it cannot serve it says before it answers anything.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from openfang.app.home.paths import Home
from openfang.app.stdio.hello import hello_of
from openfang.app.stdio.pump import Pump
from openfang.app.stdio.reach import Reach
from openfang.config.home import find_home
from openfang.core.errors import HomeError
from openfang.host.standard import take_standard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.host.standard import Taken

_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_stdio(environ: Mapping[str, str], *, toolset: str, agent: str) -> None:
    """Serve one client until it ends, or until told to end."""
    gc.freeze()
    gc.enable()
    home = Home(find_home(environ))
    if not home.exists:
        raise HomeError(
            f"There is no OpenFang home at {home.path}.",
            way_out="openfang init, or set OPENFANG_HOME",
        )
    reach = Reach(home, environ, hello_of(environ, toolset=toolset, agent=agent))
    taken = take_standard()
    with suppress(asyncio.CancelledError):
        asyncio.run(_served(taken, reach))


async def _served(taken: Taken, reach: Reach) -> None:
    _obey_signals()
    client = await taken.open()
    try:
        await Pump(client, reach).run(await reach.connect())
    finally:
        await client.close()
        await reach.close()


def _obey_signals() -> None:
    """End in good order when told to, a second time at once. What is ignored stays so."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None  # noqa: S101 - we are one

    def end(number: int) -> None:
        if task.cancelling():
            os._exit(128 + number)
        task.cancel()

    for number in _ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
