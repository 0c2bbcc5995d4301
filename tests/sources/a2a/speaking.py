"""What the tests of the client share: a client for an address, a message, an ear."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openfang.core.ids import new_id
from openfang.core.tasks import Role, Sent, TaskMessage
from openfang.host.http import HttpClient
from openfang.sources.a2a.client import Client, open_client
from openfang.sources.a2a.discover import discover
from openfang.sources.a2a.wire import Reached, Wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.sources.a2a.following import Heard


@dataclass
class Ear:
    """Notes what is told of a task."""

    heard: list[Heard] = field(default_factory=list["Heard"])

    def __call__(self, heard: Heard) -> None:
        self.heard.append(heard)

    @property
    def words(self) -> list[str]:
        return [one.words for one in self.heard if one.words]

    @property
    def said(self) -> list[str]:
        return [one.said for one in self.heard if one.said]


def message(text: str, **more: Any) -> Sent:
    parts = ({"type": "text", "text": text},)
    said = TaskMessage(id=new_id("message"), role=Role.USER, parts=parts, metadata={"k": "v"})
    return Sent(agent="peer", message=said, **more)


@asynccontextmanager
async def wired(url: str, **more: Any) -> AsyncGenerator[Wire]:
    fields: dict[str, Any] = {"allow_private": True, **more}
    async with HttpClient() as http:
        yield Wire(http, Reached(url=url, **fields))


@asynccontextmanager
async def speaking(url: str, *, absent: float = 60.0, **more: Any) -> AsyncGenerator[Client]:
    async with wired(url, **more) as wire:
        yield await open_client(wire, await discover(wire), absent=absent)
