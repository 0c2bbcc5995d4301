"""What `test_hostile_web.py` runs where there is no network but the loopback.

`PUBLIC`, `PRIVATE` and the metadata address are on the loopback device there: what must not be
reached would answer, and would be seen. One authority is trusted there, by `SSL_CERT_FILE`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from tests.faults import daemon
from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC
from tests.sources.mcp.hostility import GOOD, QUICK, entry, scene, until
from tests.sources.mcp.peers.hostile_web import Asked, Hostile
from tests.sources.mcp.peers.web import Modern, serving

from openfang.core.errors import CallTimedOut, SourceFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.sources.mcp.hostility import Scene

pytestmark = pytest.mark.requirement("C3.1", "C3.7")


@pytest.fixture(autouse=True)
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


def at(url: str, more: str = "allow_private = true\ntimeout_secs = 20", name: str = "bad") -> str:
    lines = (f'name = "{name}"', 'trust = "high"', 'risk = "LOW"', more)
    reached = f'transport = {{ type = "http", url = "{url}" }}'
    return "\n".join(("[[mcp_servers]]", *lines, reached, ""))


@asynccontextmanager
async def against(
    folder: Path, peer: Hostile | None = None, more: str = ""
) -> AsyncGenerator[tuple[Scene, Hostile]]:
    async with peer or Hostile() as served:
        text = at(served.url, f"allow_private = true\n{more or 'timeout_secs = 20'}")
        async with scene(folder, text, config="[guard]\nbreaker_secs = 0.01") as node:
            yield node, served


async def test_what_hangs_or_never_ends_is_given_up(tmp_path: Path) -> None:
    async with against(tmp_path, more="timeout_secs = 0.5") as (node, peer):
        for tool in (
            "hang",
            "hang_after_head",
            "hang_in_stream",
            "comments",
            "newlines",
            "foreign",
        ):
            async with node.watched():
                error = await node.fails(tool)
            assert isinstance(error, CallTimedOut), (tool, error.message)
            await asyncio.wait_for(peer.hung_up.wait(), 20)
            peer.hung_up.clear()
            await node.well()
        await until(lambda: peer.methods.count("notifications/cancelled") == 6)


WRONG = {
    "giant_event": "larger than 48000000 bytes",
    "giant_body": "more than 48000000 bytes",
    "cut_stream": "gave no answer",
    "cut_body": "broke off",
    "cut_head": "failed",
    "short_length": "",
    "bad_chunks": "",
    "no_http": "failed",
    "many_headers": "failed",
    "long_header": "failed",
    "html": "text/html",
    "empty": "not with JSON",
    "accepted": "gave no answer",
    "not_json": "not in JSON",
    "failing": "status 500",
    "limited": "status 429",
    "odd_status": "",
    "bad_gzip": "",
    "bomb": "more than 48000000 bytes",
}


async def test_what_is_no_answer_fails_its_call_with_the_reason(tmp_path: Path) -> None:
    async with against(tmp_path) as (node, _):
        for tool, reason in WRONG.items():
            async with node.watched():
                error = await node.fails(tool)
            assert isinstance(error, SourceFailed), tool
            assert reason in error.message, (tool, error.message)
            await node.well()
        assert (await node.call("drip")).text == "drip"
        assert (await node.call("untyped")).text == "untyped"


async def test_a_packed_flood_is_read_piece_by_piece(tmp_path: Path) -> None:
    async with against(tmp_path) as (node, _), node.watched():
        assert (await node.call("event_bomb")).text == "after all"


async def test_a_session_that_is_forgotten_is_begun_anew(tmp_path: Path) -> None:
    async with against(tmp_path) as (node, peer):
        error = await node.fails("forgotten")
        assert "forgotten the session" in error.message
        await node.well()
        assert peer.methods.count("initialize") == 2


@pytest.mark.parametrize("session", ["a b", "\xe9\xff", "x" * 2000, "tab\there"])
async def test_a_session_id_that_no_header_can_hold_is_not_sent_back(
    tmp_path: Path, session: str
) -> None:
    async with against(tmp_path, Hostile(session=session)) as (node, peer):
        await node.well()
        assert not [asked for asked in peer.seen if "mcp-session-id" in asked.headers]


async def silent(asked: Asked) -> None:
    await asked.gone()


async def signs_in(asked: Asked) -> None:
    await asked.answer("200 OK", {"Content-Type": "text/html"}, b"<html>Sign in</html>")


async def test_a_greeting_that_hangs_or_is_none_holds_up_nobody(tmp_path: Path) -> None:
    async with Hostile(greets=silent) as hangs, Hostile(greets=signs_in) as html:
        servers = (at(hangs.url), at(html.url, name="bad-html"))
        pace = replace(QUICK, connect=4.0)
        async with scene(tmp_path, *servers, pace=pace, settle=False) as node:
            node.servers.want()
            await node.well("good")
            async with node.watched():
                await node.servers.settled()
            assert "no connection in 4 s" in node.bad.health.error
            error = node.servers.find("bad-html").health.error
            assert "speaks no transport known here" in error
            assert "text/html" in error


# Addresses


@pytest.mark.requirement("C3.9", "C2.6")
async def test_no_address_that_is_refused_is_ever_reached(tmp_path: Path) -> None:
    async with (
        Hostile(host=PUBLIC) as peer,
        Hostile(host=METADATA) as metadata,
        Hostile(host=PRIVATE) as private,
        Hostile() as loopback,
    ):
        victims = (metadata, private, loopback)
        plain = "timeout_secs = 20"
        servers = [
            at(peer.url, plain),
            at(metadata.url, "allow_private = true", name="metadata"),
            at(private.url, plain, name="private"),
            at(loopback.url, plain, name="loopback"),
            at("http://metadata.google.internal/mcp", "allow_private = true", name="google"),
        ]
        config = "[guard]\nbreaker_secs = 0.01"
        async with scene(tmp_path, *servers, config=config) as node:
            words = node.servers.health()
            assert words.pop("bad") == words.pop("good") == "healthy"
            assert set(words.values()) == {"unhealthy"}
            for name in words:
                error = node.servers.find(name).health.error
                assert error, name
                assert ("allow_private" in error) == (name in {"private", "loopback"}), error
            for victim in victims:
                for status in (301, 302, 303, 307, 308):
                    error = await node.fails("redirect", status=status, to=victim.url)
                    assert isinstance(error, SourceFailed)
                    await node.well()
        assert [victim.methods for victim in victims] == [[], [], []]


@pytest.mark.requirement("C3.9", "C18.4")
async def test_a_redirect_to_somebody_else_takes_nothing_along(tmp_path: Path) -> None:
    async with Hostile() as peer, Hostile() as other:
        headers = 'headers = { Authorization = "Bearer secret" }'
        text = at(peer.url).replace(" }\n", f", {headers} }}\n")
        async with scene(tmp_path, text, config="[guard]\nbreaker_secs = 0.01") as node:
            for status in (307, 308):
                error = await node.fails("redirect", status=status, to=other.url)
                assert "redirects the body" in error.message
            for status in (301, 302, 303):
                await node.well()
                error = await node.fails("redirect", status=status, to=other.url)
                assert "to a GET" in error.message
            await node.well()
            error = await node.fails("redirect", status=307, to=peer.url)
            assert "redirects more than 5 times" in error.message
        assert other.methods == []
        assert peer.seen[0].headers["authorization"] == "Bearer secret"


# Certificates


def context(folder: Path, name: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return made


@pytest.mark.requirement("C3.9", "C2.6")
async def test_a_certificate_that_does_not_fit_is_that_servers_matter(tmp_path: Path) -> None:
    folder = Path(os.environ["SSL_CERT_FILE"]).parent
    names = ("fits", "other", "expired", "stranger")
    contexts = await to_thread.run_sync(lambda: [context(folder, name) for name in names])
    fits, other, expired, stranger = (Hostile(tls=one) for one in contexts)
    async with fits, other, expired, stranger:
        servers = [
            at(fits.url),
            at(other.url, name="other"),
            at(expired.url, name="expired"),
            at(stranger.url, name="stranger"),
        ]
        async with scene(tmp_path, *servers) as node:
            await node.well()
            reasons = {"other": "mismatch", "expired": "expired", "stranger": "self-signed"}
            for name, reason in reasons.items():
                health = node.servers.find(name).health
                assert health.word == "unhealthy"
                assert reason in health.error, health.error
        assert other.methods == expired.methods == stranger.methods == []


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take the greeting of TLS and say nothing."""
    await reader.read()
    writer.close()


async def test_tls_that_never_begins_holds_up_nobody(tmp_path: Path) -> None:
    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        pace = replace(QUICK, connect=1.5)
        text = at(f"https://127.0.0.1:{port}/mcp")
        async with scene(tmp_path, text, pace=pace, settle=False) as node:
            node.servers.want()
            await node.well("good")
            async with node.watched():
                await node.servers.settled()
            assert "no connection in 1.5 s" in node.bad.health.error


def looked_at(folder: Path, config: str, names: set[str]) -> dict[str, str]:
    """Start a daemon, wait until each of these has failed, and say why, as the command shows it."""
    with daemon.serving(daemon.make_home(folder / "home", config)) as running:
        ends = time.monotonic() + 60
        while True:
            listed = json.loads(running.home.run("servers", "list", "--json").stdout)
            found = {one["name"]: one["last_error"] for one in listed["configured"]}
            if all(found[name] for name in names) and listed["connected"]:
                break
            assert time.monotonic() < ends, found
        answer = running.call("mcp:good:echo", text="on").json
        assert answer["content"] == [{"type": "text", "text": "on"}]
        health = json.loads(running.home.run("servers", "health", "--json").stdout)
        assert health == {"good": "healthy", **dict.fromkeys(names, "unhealthy")}
        return found


@pytest.mark.requirement("C3.9", "C2.6", "C4.8")
async def test_a_daemon_tells_of_each_and_the_others_start(tmp_path: Path) -> None:
    folder = Path(os.environ["SSL_CERT_FILE"]).parent
    tls = await to_thread.run_sync(context, folder, "stranger")
    async with Hostile(host=PRIVATE) as victim, Hostile(tls=tls) as stranger:

        async def leads_away(asked: Asked) -> None:
            await asked.answer("307 Moved", {"Location": victim.url}, b"")

        async with Hostile(host=PUBLIC, greets=leads_away) as redirects:
            servers = {
                "metadata": at(f"http://{METADATA}/mcp", name="metadata"),
                "private": at(victim.url, "", name="private"),
                "redirects": at(redirects.url, "", name="redirects"),
                "stranger": at(stranger.url, name="stranger"),
            }
            config = "\n".join((daemon.NO_LIMITS, *servers.values(), entry("good", GOOD)))
            found = await to_thread.run_sync(looked_at, tmp_path, config, set(servers))
        assert "169.254.169.254/32 (metadata)" in found["metadata"]
        assert "10.0.0.0/8 (private)" in found["private"]
        assert f"redirects the body of the request to {PRIVATE}" in found["redirects"]
        assert "self-signed" in found["stranger"]
        assert victim.methods == stranger.methods == []


# Cancelling


@pytest.mark.requirement("C3.5")
async def test_a_call_that_is_given_up_is_told_of_or_hung_up_on(tmp_path: Path) -> None:
    async with against(tmp_path / "session") as (node, peer):
        async with anyio.create_task_group() as group:
            group.start_soon(node.call, "hang_in_stream")
            await until(lambda: "tools/call" in peer.methods)
            group.cancel_scope.cancel()
        await until(lambda: "notifications/cancelled" in peer.methods)
        call = next(one for one in peer.seen if one.name == "tools/call")
        told = next(one for one in peer.seen if one.name == "notifications/cancelled")
        assert told.body["params"]["requestId"] == call.id
    modern = Modern()
    modern.tools = [{"name": "wait", "inputSchema": {"type": "object"}}]
    async with serving(modern) as url, scene(tmp_path / "modern", at(url)) as node:
        async with anyio.create_task_group() as group:
            group.start_soon(node.call, "wait")
            await asyncio.wait_for(modern.called.wait(), 20)
            group.cancel_scope.cancel()
        await asyncio.wait_for(modern.gone.wait(), 20)
        assert "notifications/cancelled" not in modern.methods
