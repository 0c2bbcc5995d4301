"""Runs a command's coroutine on an open home, as the holder of its key."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, TypeVar

import anyio

from openfang.app.local import open_local

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.app.local import Local

T = TypeVar("T")


def on_home(work: Callable[[Local], Awaitable[T]]) -> T:
    """Open the home, do the work, put everything in order again."""

    async def inside() -> T:
        async with open_local() as local:
            return await work(local)

    return run_async(inside)


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine on the event loop that we ship with."""
    gc.freeze()
    gc.enable()
    return anyio.run(main, backend="asyncio", backend_options={"use_uvloop": True})


def read_home(look: Callable[[Local], T]) -> T:
    """Open the home only to look at something."""

    async def work(local: Local) -> T:
        return look(local)

    return on_home(work)
