"""A node with real servers behind it, and callers who may do what they ask for."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.cluster.housed import nodes_server

from openfang.app.admin import Admin
from openfang.core.ids import new_id
from openfang.core.keys import AdminToken
from openfang.policy.context import Wish
from openfang.testing import open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from tests.peers.servers import Server

    from openfang.app.servers.running import Servers
    from openfang.core.calls import Call
    from openfang.core.progress import Progress
    from openfang.core.results import Result
    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.source import McpSource
    from openfang.testing import OpenApp


__all__ = ("nodes_server",)


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """One loop for a module: its servers are started once."""
    return "asyncio", {"use_uvloop": True}


@dataclass(frozen=True, slots=True)
class Node:
    """An open node whose servers have had their chance to connect."""

    app: OpenApp
    servers: Servers
    plan: Wish
    token: str

    async def call(self, tool: str, /, **arguments: Any) -> Result:
        """Call as anybody would."""
        with anyio.fail_after(60):
            return await self.app.call(f"mcp:{tool}", **arguments)

    async def act(self, tool: str, /, **arguments: Any) -> Result:
        """Call under a plan that was frozen and with an admin token, as what is risky wants."""
        with anyio.fail_after(60):
            return await self.app.invoke(self.made(tool, arguments))

    async def given_up(self, tool: str, arguments: Mapping[str, Any]) -> Call:
        """Make a call, and take it back as soon as it tells how far it is."""
        begun = anyio.Event()

        def told(_: Progress) -> None:
            begun.set()

        call = self.made(tool, arguments, progress=told)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(self.app.invoke, call)
                await begun.wait()
                group.cancel_scope.cancel()
        return call

    def made(self, tool: str, arguments: Mapping[str, Any], **fields: Any) -> Call:
        """Make such a call, and do not send it yet."""
        return self.app.make(
            f"mcp:{tool}", arguments, wish=self.plan, admin_token=self.token, **fields
        )

    def source(self, name: str) -> McpSource:
        return self.servers.find(name)

    def connection(self, name: str) -> Connection:
        found = self.source(name)._connection
        assert found, self.source(name).health.error
        return found

    async def restarted(self, name: str) -> None:
        """Start a server again, and wait for it."""
        before = self.connection(name)
        self.source(name).restart()
        await self.back(name, before)

    async def back(self, name: str, before: Connection) -> None:
        """Wait until a server has another connection."""
        await until(lambda: self.source(name)._connection not in {None, before})


async def until(seen: Callable[[], object]) -> None:
    """Look until it is so; what it waits for is not announced."""
    with anyio.fail_after(60):
        while not seen():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.01)


@asynccontextmanager
async def running(
    folder: Path, *entries: Server | str, path: str = "", settled: bool = True
) -> AsyncGenerator[Node]:
    """Open a node with these servers, and wait until each is there or is known not to be.

    `path` is where it looks for programs.
    """
    text = "\n".join(one if isinstance(one, str) else one.entry for one in entries)
    environ = {"HOME": str(folder), **({"PATH": path} if path else {})}
    async with open_test_app(folder, config=text, environ=environ) as app:
        servers = app.parts.servers
        assert servers
        servers.want()
        await until(lambda: servers.running)
        for source in servers.running.values() if settled else ():
            with anyio.fail_after(100):
                await source.settled()
        admin = Admin(app.parts, app.caller)
        plan = await admin.freeze_spec("plan", b"what these tests do", "default")
        _, token = await admin.create_token(AdminToken(id="", name=new_id("second")), ttl=600)
        yield Node(app, servers, Wish(spec_hash=plan.hash), token)
