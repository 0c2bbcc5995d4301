"""A node with servers that ask and tell things, and clients that are asked and told."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from openfang.core.calls import Caller, Grants
from openfang.core.ids import new_id
from openfang.core.results import Result
from openfang.sources.mcp.pace import Pace
from openfang.testing import OpenApp, open_test_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from openfang.app.servers.running import Servers
    from openfang.core.events import AuditEvent
    from openfang.core.news import News
    from openfang.sources.mcp.source import McpSource

PEER = Path(__file__).parent / "peers" / "federated.py"
QUICK = Pace(breath=0.05, share=1.0, grace=0.05)
EVERYTHING: Mapping[str, Any] = {
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
    "roots": {},
}
WORDS = {
    "role": "assistant",
    "content": {"type": "text", "text": "Paris"},
    "model": "none",
    "stopReason": "endTurn",
}
ROOTS = {"roots": [{"uri": "file:///workspace", "name": "workspace"}]}
Answer: TypeAlias = "Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | Result]]"


async def accept(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write a name into a form."""
    del params
    return {"action": "accept", "content": {"name": "Ada"}}


async def sample(params: Mapping[str, Any]) -> Mapping[str, Any]:
    del params
    return WORDS


async def folders(params: Mapping[str, Any]) -> Mapping[str, Any]:
    del params
    return ROOTS


ANSWERS: Mapping[str, Answer] = {
    "sampling/createMessage": sample,
    "elicitation/create": accept,
    "roots/list": folders,
}


@dataclass(kw_only=True)
class Person:
    """A client that answers by functions, and keeps what it was asked and told."""

    key: str = "ada"
    connection: str = field(default_factory=lambda: new_id("link"))
    capabilities: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING)
    level: str = ""
    has_person: bool = True
    answers: Mapping[str, Answer] = field(default_factory=lambda: ANSWERS)
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[Any])
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[Any])
    names: list[str] = field(default_factory=list[str])
    announced: list[int] = field(default_factory=list[int])
    missed: int = 0
    given_up: int = 0
    news: anyio.Event = field(default_factory=anyio.Event)

    @property
    def caller(self) -> Caller:
        grants = Grants(tools=("*",), network=("*",))
        return Caller(id=f"key:{self.key}", grants=grants, projects=("default",))

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        self.asked.append((method, params))
        self.names.append(name)
        self._moved()
        try:
            answer = await self.answers[method](params)
        except anyio.get_cancelled_exc_class():
            self.given_up += 1
            self._moved()
            raise
        return answer if isinstance(answer, Result) else Result(structured=dict(answer))

    def together(self, count: int) -> Callable[[], None]:
        self.announced.append(count)

        def missed() -> None:
            self.missed += 1

        return missed

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append((method, params))
        self._moved()

    def _moved(self) -> None:
        self.news.set()
        self.news = anyio.Event()

    async def until(self, seen: Callable[[], object]) -> None:
        """Wait until something that was asked or told has made it so."""
        with anyio.fail_after(20):
            while not seen():
                await self.news.wait()


def entry(name: str, *options: str, more: str = "", script: Path = PEER) -> str:
    """One server of the configuration, whose tools are taken for harmless."""
    args = json.dumps(["-I", "-S", str(script), *options])
    return stdio(name, args, more)


def stdio(name: str, args: str, more: str = "") -> str:
    reached = f'transport = {{ type = "stdio", command = "{sys.executable}", args = {args} }}'
    return _entry(name, reached, more)


def web(name: str, url: str, more: str = "") -> str:
    reached = f'transport = {{ type = "http", url = "{url}" }}'
    return _entry(name, reached, f"allow_private = true\n{more}")


def _entry(name: str, reached: str, more: str) -> str:
    lines = (f'name = "{name}"', 'trust = "high"', 'risk = "LOW"', 'sandbox = "off"', more)
    return "\n".join(("[[mcp_servers]]", *lines, reached, ""))


@dataclass
class Node:
    """An open node, and what its bus has told."""

    app: OpenApp
    servers: Servers
    heard: list[News] = field(default_factory=list["News"])
    moved: anyio.Event = field(default_factory=anyio.Event)

    def hear(self, news: News) -> None:
        self.heard.append(news)
        self.moved.set()
        self.moved = anyio.Event()

    async def hears(self, news: News, times: int = 1) -> None:
        with anyio.fail_after(20):
            while self.heard.count(news) < times:
                await self.moved.wait()

    def source(self, name: str = "peer") -> McpSource:
        return self.servers.find(name)

    async def call(
        self, tool: str, /, client: Person | None = None, *, server: str = "peer", **arguments: Any
    ) -> Result:
        """Call something of a server's, with a client that can be asked."""
        call = self.app.make(f"mcp:{server}:{tool}", arguments)
        if client is not None:
            made = self.app.make(f"mcp:{server}:{tool}", arguments, caller=client.caller)
            call = replace(made, client=client)
        with anyio.fail_after(30):
            return await self.app.invoke(call)

    async def audited(self, tool: str) -> list[AuditEvent]:
        """What the log says of calls of one id."""
        return [event for event in await self.app.events() if event.context["tool"] == tool]

    async def seen(self, server: str = "peer") -> list[dict[str, Any]]:
        """What a server was sent, as it came."""
        return (await self.call("seen", server=server)).structured["seen"]

    async def params(self, method: str, server: str = "peer") -> list[dict[str, Any]]:
        """The params of all requests of one method that a server was sent."""
        seen = await self.seen(server)
        return [one.get("params", {}) for one in seen if one.get("method") == method]

    async def receives(self, method: str, times: int, server: str = "peer") -> None:
        """Ask a server until it was sent so many requests of one method."""
        with anyio.fail_after(20):
            while len(await self.params(method, server)) < times:  # noqa: ASYNC110 - as `until`
                await anyio.sleep(0.01)


@asynccontextmanager
async def node(
    folder: Path, *servers: str, pace: Pace = QUICK, config: str = "", lists: bool = True
) -> AsyncGenerator[Node]:
    """Open a node with these servers, when they have said what there is."""
    text = "\n".join((config, *servers))
    async with open_test_app(folder, config=text) as app:
        found = app.parts.servers
        assert found
        found.pace = pace
        opened = Node(app, found)
        app.parts.news.subscribe(opened.hear)
        with anyio.fail_after(60):
            await found.settled(lists=lists)
            yield opened


async def until(seen: Callable[[], object]) -> None:
    """Look until it is so; what it waits for is not announced."""
    with anyio.fail_after(20):
        while not seen():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.01)
