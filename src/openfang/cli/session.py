"""Runs a command's coroutine on a home, with its daemon or in process, as the holder of its key."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio

from openfang.app.attach import open_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.core.session import Session

T = TypeVar("T")
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


def on_home(work: Callable[[Session], Awaitable[T]]) -> T:
    """Find the daemon or open the home, do the work, put everything in order again."""

    async def inside() -> T:
        async with open_session() as session:
            _collect()
            return await work(session)

    return _run(inside)


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine on the event loop that we ship with; a signal cancels it like Ctrl-C."""
    _collect()
    return _run(main)


def _collect() -> None:
    """Look for garbage from now on, and never in what is here already."""
    gc.freeze()
    gc.enable()


def _run(main: Callable[[], Awaitable[T]]) -> T:
    ending = _Ending()
    try:
        return anyio.run(
            ending.watch, main, backend="asyncio", backend_options={"use_uvloop": True}
        )
    finally:
        if ending.signal:
            _leave(128 + ending.signal)


@dataclass(slots=True)
class _Ending:
    """Which signal told the command to end, if one did."""

    signal: int = 0

    async def watch(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run it, and cancel it when told to."""
        loop = asyncio.get_running_loop()
        scope = anyio.CancelScope()

        def end(number: int) -> None:
            self.signal = number
            scope.cancel()

        # What is ignored stays so: that is what nohup means.
        watched = [number for number in _ENDINGS if signal.getsignal(number) == signal.SIG_DFL]
        for number in watched:
            loop.add_signal_handler(number, end, number)
        try:
            with scope:
                return await main()
        finally:
            for number in watched:
                loop.remove_signal_handler(number)
        raise asyncio.CancelledError


def _leave(code: int) -> NoReturn:
    """Exit now: a thread may still wait for input that nobody will type."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
