"""Runs a command's coroutine on a home, with its daemon or in process, as the holder of its key."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

from openfang.app.attach import open_session
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from anyio.from_thread import BlockingPortal

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


@contextmanager
def held_home() -> Generator[Held]:
    """Keep the home open beside this thread, which is free to wait for what a person types."""
    with (
        _ended_by_signals(),
        start_blocking_portal("asyncio", {"use_uvloop": True}) as portal,
        portal.wrap_async_context_manager(open_session()) as session,
    ):
        _collect()
        yield Held(portal, session)


@dataclass(frozen=True, slots=True)
class Held:
    """A session in a thread of its own."""

    portal: BlockingPortal
    session: Session

    def do(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Do it there and wait; what interrupts the wait cancels it, to its end."""
        ended = Event()

        async def inside() -> T:
            try:
                return await work(self.session)
            finally:
                ended.set()

        future = self.portal.start_task_soon(inside)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait()
            raise


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """Leave in good order when told to; a signal that is ignored stays so."""

    def end(number: int, frame: object) -> NoReturn:
        del frame
        raise SystemExit(128 + number)

    watched = [number for number in _ENDINGS if signal.getsignal(number) == signal.SIG_DFL]
    for number in watched:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in watched:
            signal.signal(number, signal.SIG_DFL)


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
