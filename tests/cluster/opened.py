"""Nodes of a cluster opened in this process: all of them but their edges."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from openfang.app.home.paths import Home
from openfang.app.lifespan import open_app
from openfang.core.calls import EVERYTHING, Caller, Role
from openfang.testing.app import OpenApp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from tests.cluster.house import Node

_ADMIN = Caller(id="key:admin", role=Role.ADMIN, grants=EVERYTHING, projects=("default",))


@asynccontextmanager
async def opened(nodes: Sequence[Node]) -> AsyncGenerator[list[OpenApp]]:
    """Open their homes; all of them hear each other when the test begins."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(_opened(node)) for node in nodes]


@asynccontextmanager
async def _opened(node: Node) -> AsyncGenerator[OpenApp]:
    home, environ = Home(node.cli.home), {"HOME": str(node.cli.home)}
    listening = anyio.Event()
    async with open_app(home, environ) as parts:
        parts.database.on("tasks", lambda _: listening.set())
        with anyio.fail_after(30):
            await listening.wait()
        yield OpenApp(parts, _ADMIN)
