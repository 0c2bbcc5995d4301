"""No credential of a caller is passed on (C18.4): every byte to each kind of upstream is seen."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest
from tests.agents.models.minds import thinker
from tests.agents.models.scripted import Says, scripted
from tests.edges.issuer import AUDIENCE, issuer
from tests.edges.live import live
from tests.sources.a2a.sdk_peer import sdk_peer
from tests.sources.mcp.peers.web import Modern, Session, Sse, answer, json_response, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from aiohttp import web
    from tests.edges.issuer import Issuer
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C18.4")

OWN = "sk-the-nodes-own-credential-0001"
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}
COOKIE = "canary-of-a-cookie-4711"


class Offering(Session):
    """A server with sessions that has a tool."""

    async def respond(
        self, request: web.Request, method: str, body: dict[str, Any]
    ) -> web.StreamResponse:
        if method != "tools/list":
            return await super().respond(request, method, body)
        return json_response(answer(body["id"], {"tools": [TOOL]}))


class OldOffering(Sse):
    """A server of 2024 that has a tool."""

    async def respond(self, number: object, method: str, params: dict[str, Any]) -> None:
        told: dict[str, dict[str, Any]] = {
            "initialize": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}},
            "tools/list": {"tools": [TOOL]},
        }
        if method not in told:
            await super().respond(number, method, params)
            return
        await self.out.put(answer(number, told[method]))


@dataclass
class Tap:
    """Stands before an upstream, and keeps what was sent to it."""

    target: str
    url: str = ""
    sent: bytearray = field(default_factory=bytearray)
    open: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = urlsplit(self.target)
        upstream, outlet = await asyncio.open_connection(there.hostname, there.port)

        async def back() -> None:
            while data := await upstream.read(65_536):
                writer.write(data)
                await writer.drain()
            writer.close()

        answering = asyncio.ensure_future(back())
        self.open.append(answering)
        try:
            while data := await reader.read(65_536):
                self.sent += data
                outlet.write(data)
                await outlet.drain()
        except ConnectionError:
            pass
        finally:
            outlet.close()


@asynccontextmanager
async def tapped(target: str) -> AsyncGenerator[Tap]:
    tap = Tap(target)
    server = await asyncio.start_server(tap.pass_on, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    tap.url = f"http://{host}:{port}{urlsplit(target).path}"
    try:
        yield tap
    finally:
        server.close()
        for answering in tap.open:
            answering.cancel()
        await asyncio.gather(*tap.open, return_exceptions=True)


def entry(name: str, kind: str, url: str) -> str:
    own = f'{{ Authorization = "Bearer {OWN}" }}'
    transport = f'{{ type = "{kind}", url = "{url}", headers = {own} }}'
    return f'[[mcp_servers]]\nname = "{name}"\nallow_private = true\ntransport = {transport}\n'


def peer(url: str) -> str:
    return f'[[a2a.external_agents]]\nname = "far"\nurl = "{url}"\nallow_private = true\n'


def configured(mint: Issuer, *taps: Tap) -> str:
    modern, session, sse, far, model = taps
    return "\n".join(
        (
            f'[auth.issuer]\nurl = "{mint.url}"\naudience = "{AUDIENCE}"\nallow_private = true',
            f'[providers.openai]\nbase_url = "{model.url}"\nallow_private = true',
            f'api_key = "{OWN}"\n[a2a]\nenabled = true',
            entry("modern", "http", modern.url),
            entry("session", "http", session.url),
            entry("old", "sse", sse.url),
            peer(far.url),
        )
    )


async def settled(node: Live) -> None:
    parts = node.app.parts
    assert parts.servers
    assert parts.agents
    assert parts.peers
    await parts.servers.settled()
    await parts.agents.opened()
    await parts.peers.settled()


CALLS = (
    *(("mcp:modern:echo", {"text": "hi"}), ("mcp:session:echo", {"text": "hi"})),
    *(("mcp:old:echo", {"text": "hi"}), ("a2a:far", {"message": "hi"})),
    ("agent:thinker", {"message": "hi"}),
)


async def called(node: Live, mint: Issuer) -> list[str]:
    """Call each with a key and with a token, and return all that must not be seen."""
    key, admin = await node.key("caller"), await node.key("second", kind="admin_token")
    token = mint.sign()
    headers = {"X-Admin-Token": admin, "Cookie": f"session={COOKIE}", "X-Api-Key": key}
    for credential in (key, token):
        for tool, arguments in CALLS:
            reply = await node.call(tool, arguments, key=credential, headers=headers)
            assert (tool, reply.status) == (tool, 200), reply.body
            assert (tool, reply.json["outcome"]) == (tool, "ok"), reply.body
    return [key, admin, token, COOKIE, node.admin]


async def test_no_upstream_of_any_kind_sees_a_credential_of_the_caller(tmp_path: Path) -> None:
    thinker(tmp_path)
    with issuer() as mint, scripted(*[Says("hello")] * 9) as model:
        async with (
            serving(Modern()) as modern,
            serving(Offering()) as session,
            serving(OldOffering()) as sse,
            sdk_peer() as agent,
            tapped(modern) as one,
            tapped(session) as two,
            tapped(sse) as three,
            tapped(agent.url) as four,
            tapped(model.openai) as five,
        ):
            taps = (one, two, three, four, five)
            agent.card["supportedInterfaces"][0]["url"] = f"{four.url}/rpc"
            async with live(tmp_path, config=configured(mint, *taps)) as node:
                await settled(node)
                hidden = await called(node, mint)
    for tap in taps:
        sent = bytes(tap.sent)
        assert len(sent) > 500
        for secret in hidden:
            for form in (secret, quote(secret, safe=""), b64encode(secret.encode()).decode()):
                assert form.encode() not in sent
    assert all(OWN.encode() in tap.sent for tap in (one, two, three, five))
