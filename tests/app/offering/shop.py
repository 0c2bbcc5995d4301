"""An open home with what it offers, and small tables of tools to offer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from openfang.app.offering.offers import Offers
from openfang.core.calls import Grants, Role
from openfang.core.events import POLICY_VIOLATION, AuditEvent
from openfang.core.ids import Kind
from openfang.core.session import NO_OPTIONS
from openfang.core.trace import new_chain
from openfang.edges.mcp.ports import Place
from openfang.storage.log import all_rows
from openfang.testing import OpenApp, TableSource, foreign_tool, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping
    from pathlib import Path

    from openfang.core.calls import Caller
    from openfang.core.results import Result
    from openfang.edges.mcp import ports

WHOLE = Place()


@dataclass(frozen=True, slots=True)
class Shop:
    """A home, and what it offers."""

    app: OpenApp
    offers: ports.Offers

    def at(self, place: Place = WHOLE, caller: Caller | None = None) -> ports.Offer:
        return self.offers(caller or self.app.caller, place, new_chain())

    def holder(self, *tools: str, name: str = "some") -> Caller:
        """Somebody with a key that opens only these."""
        caller = replace(self.app.caller, id=f"key:{name}", role=Role.USER)
        return replace(caller, grants=Grants(tools=tools))


def names(offer: ports.Offer) -> list[str]:
    return [one.name for one in offer.tools()]


async def call(offer: ports.Offer, tool: str, /, **arguments: Any) -> Result:
    return await offer.call(tool, arguments, NO_OPTIONS)


async def refusals(app: OpenApp) -> list[AuditEvent]:
    """What is on record of those who were turned away before there was a call."""
    await app.parts.writer.drain()
    found = await to_thread.run_sync(all_rows, app.file.path)
    events = map(AuditEvent.of, found)
    return [e for e in events if e.event_type == POLICY_VIOLATION and not e.call_id]


def table(server: str, *tools: str, **described: str) -> TableSource:
    """A server that says which of its tools was called, and with what."""

    def function(name: str) -> Any:
        async def said(arguments: Mapping[str, Any]) -> str:
            return f"{name} {dict(arguments)}"

        return said

    all_tools = {**dict.fromkeys(tools, ""), **described}
    return TableSource(
        Kind.MCP,
        server,
        {
            name: (
                foreign_tool(server, name, f"[MCP:{server}] {text}".rstrip(), tags=frozenset()),
                function(name),
            )
            for name, text in all_tools.items()
        },
    )


def entry(server: str) -> str:
    """A server of the configuration that is named, and not started."""
    reached = 'transport = { type = "stdio", command = "none" }'
    return f'[[mcp_servers]]\nname = "{server}"\nenabled = false\n{reached}\n'


@asynccontextmanager
async def shop(
    folder: Path, config: str = "", sources: Iterable[TableSource] = ()
) -> AsyncGenerator[Shop]:
    async with open_test_app(folder, config=config, sources=sources) as app:
        with anyio.fail_after(60):
            yield Shop(app, Offers(app.parts))
