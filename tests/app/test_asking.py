"""What a session over HTTP sends, and what it says when the daemon answers oddly or not at all."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest

from openfang.app.attach import open_session
from openfang.app.daemon.discovery import only_daemon, this_daemon, write
from openfang.app.home.new import init_home
from openfang.app.local import Local, open_local
from openfang.app.remote.asking import Asking
from openfang.app.remote.session import Remote
from openfang.core.bodies import problem_body, result_body
from openfang.core.calls import Mode
from openfang.core.errors import InvalidArguments, OpenFangError, Parked, Unauthenticated
from openfang.core.keys import Key
from openfang.core.log import Search
from openfang.core.results import text_result
from openfang.core.session import Options
from openfang.host.loopback import DaemonUnreachable, Loopback

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    Script = Callable[["Peer"], Awaitable[None]]

pytestmark = pytest.mark.requirement("C12.5")

_HEALTHY = {"status": "ok"}
_PARKED = Parked("It waits.", question_id="ask_1", rule="spec_not_frozen")


class Peer:
    """The daemon's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> tuple[str, dict[str, str], Any]:
        """Read one request: its first line, its headers, its body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return head[0], headers, orjson.loads(body) if body else None

    def say(self, body: object, status: int = 200, kind: str = "application/json") -> None:
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + content)

    def refuse(self, error: OpenFangError) -> None:
        body = problem_body(error)
        self.say(body, body["status"], "application/problem+json")


@asynccontextmanager
async def served(script: Script) -> AsyncGenerator[int]:
    """Play a daemon, at this port."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(Peer(reader, writer))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        with anyio.fail_after(20):
            yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def remote(script: Script) -> AsyncGenerator[Remote]:
    async with served(script) as port, Loopback(f"http://127.0.0.1:{port}") as client:
        yield Remote(Asking(client))


async def test_a_call_is_sent_with_everything_that_was_chosen() -> None:
    seen: list[tuple[str, dict[str, str], Any]] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        peer.say(result_body(text_result("done")))

    options = Options(
        mode=Mode.PLANNING,
        project="p",
        spec="s",
        task="t",
        blacklist=frozenset({"fs.write", "fs.delete"}),
        run="r",
        admin_token="oft_\xe9\n",
        patience=2.5,
    )
    async with remote(script) as session:
        result = await session.call("mcp:a/b:c d", {"x": 1}, options)
    assert result.text == "done"
    ((line, headers, body),) = seen
    assert line == "POST /api/tools/mcp%3Aa%2Fb%3Ac%20d/call HTTP/1.1"
    assert (headers["prefer"], headers["x-admin-token"]) == ("wait=3", "oft_??")
    assert body == {
        "arguments": {"x": 1},
        "context": {
            "mode": "planning",
            "project_id": "p",
            "spec_hash": "s",
            "task_id": "t",
            "blacklist": ["fs.delete", "fs.write"],
            "run": "r",
        },
    }


async def test_who_is_more_patient_than_the_daemon_asks_again_and_once_it_ran_never() -> None:
    waits: list[str] = []

    async def script(peer: Peer) -> None:
        while True:
            _, headers, _ = await peer.request()
            waits.append(headers["prefer"])
            if len(waits) < 3:
                peer.refuse(_PARKED)
            else:
                peer.say(result_body(text_result("at last")))

    async with remote(script) as session:
        result = await session.call("tool", {}, Options(patience=1500))
    assert result.text == "at last"
    assert waits == ["wait=600", "wait=600", "wait=300"]


async def test_who_is_not_more_patient_hears_that_it_waits() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.refuse(_PARKED)

    async with remote(script) as session:
        with pytest.raises(Parked) as raised:
            await session.call("tool", {}, Options(patience=600))
    assert raised.value.question_id == "ask_1"


async def test_a_call_that_was_sent_and_not_answered_is_not_sent_again_and_may_have_run() -> None:
    received = 0

    async def script(peer: Peer) -> None:
        nonlocal received
        await peer.request()
        received += 1

    async with remote(script) as session:
        with pytest.raises(DaemonUnreachable) as raised:
            await session.call("file_write", {})
    assert raised.value.sent
    assert "The call of file_write was sent: it may have run." in raised.value.message
    assert "openfang audit search --tool file_write" in raised.value.way_out
    assert received == 1


async def test_a_change_that_was_sent_and_not_answered_may_have_been_made() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    async with remote(script) as session:
        with pytest.raises(DaemonUnreachable, match="it may have been done") as raised:
            await session.create_key(Key(id="", name="ci"))
    assert "openfang audit tail" in raised.value.way_out


async def test_what_could_not_be_sent_was_not_done() -> None:
    async def never(peer: Peer) -> None:
        raise AssertionError(peer)

    async with served(never) as port:
        pass
    async with Loopback(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(DaemonUnreachable) as raised:
            await Remote(Asking(client)).call("file_write", {})
    assert not raised.value.sent
    assert "may have" not in raised.value.message


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"Bad Gateway", 502, "text/plain"),
        (b"<html>", 200, "text/html"),
        (b"[]", 200, "application/json"),
        (b"{}", 403, "application/problem+json"),
        (b"\xff", 403, "application/problem+json"),
        (b'{"call_id": 1}', 200, "application/json"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_a_sentence_and_leaves_the_doubt(
    body: bytes, status: int, kind: str
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(body, status, kind)

    async with remote(script) as session:
        with pytest.raises(DaemonUnreachable, match=r"cannot read.*may have run"):
            await session.call("tool", {})


async def test_an_export_that_breaks_off_is_an_error_and_not_a_shorter_log() -> None:
    event: dict[str, Any] = {
        "audit_id": 1,
        "node": "n",
        "created_at": "",
        "event_type": "key_created",
        "level": "info",
        "call_id": "",
        "task_id": "",
        "payload": {},
        "context": {},
        "hash": "",
    }

    async def script(peer: Peer) -> None:
        await peer.request()
        line = orjson.dumps(event) + b"\n"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        peer.writer.write(head + b"%x\r\n%b\r\n" % (len(line), line))

    async with remote(script) as session:
        events = session.after(0)
        assert (await anext(events)).audit_id == 1
        with pytest.raises(DaemonUnreachable):
            await anext(events)


async def test_arguments_that_are_not_json_are_refused_before_anything_is_sent() -> None:
    async def never(peer: Peer) -> None:
        raise AssertionError(peer)

    async with remote(never) as session:
        with pytest.raises(InvalidArguments):
            await session.call("tool", {"x": object()})


async def test_a_call_that_is_cancelled_closes_the_connection() -> None:
    arrived, gone = anyio.Event(), anyio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        assert await peer.reader.read() == b""
        gone.set()

    async with remote(script) as session, anyio.create_task_group() as group:
        group.start_soon(session.call, "tool", {"x": 1})
        await arrived.wait()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await gone.wait()


@asynccontextmanager
async def a_daemon(home: Path, script: Script) -> AsyncGenerator[None]:
    """Play the daemon of a home, as commands find it."""
    async with served(script) as port, only_daemon(home):
        await anyio.to_thread.run_sync(write, home, this_daemon("127.0.0.1", port))
        yield


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    environ = {"HOME": str(tmp_path), "OPENFANG_HOME": str(tmp_path / "home")}
    init_home(tmp_path / "home", environ)
    return environ


async def test_without_a_daemon_the_work_is_done_in_process(environ: dict[str, str]) -> None:
    async with open_session(environ) as session:
        assert isinstance(session, Local)


async def test_with_a_daemon_it_is_asked_with_the_key_and_the_chain(
    environ: dict[str, str], tmp_path: Path
) -> None:
    seen: list[dict[str, str]] = []

    async def script(peer: Peer) -> None:
        while True:
            line, headers, _ = await peer.request()
            if "/api/health" in line:
                peer.say(_HEALTHY)
            else:
                seen.append(headers)
                peer.say({"specs": [], "total": 0})

    trace = "0af7651916cd43dd8448eb211c80319c"
    chain = {
        "OPENFANG_CHAIN": "agent:a,not an ancestor,agent:b",
        "TRACEPARENT": f"00-{trace}-b7ad6b7169203331-01",
        "X_OPENSTARRY_TRACE_ID": "theirs",
    }
    async with a_daemon(tmp_path / "home", script):
        for more in ({}, chain, {"OPENFANG_API_KEY": "of_other", "TRACEPARENT": "broken\n"}):
            async with open_session({**environ, **more}) as session:
                assert isinstance(session, Remote)
                assert await session.specs() == []
    plain, chained, other = seen
    key = (tmp_path / "home/key").read_text().strip()
    assert plain["authorization"] == f"bearer {key.lower()}"
    assert not {"traceparent", "openfang-chain"} & plain.keys()
    assert chained["traceparent"].split("-")[1] == trace
    assert chained["x-openstarry-trace-id"] == "theirs"
    assert chained["openfang-chain"] == "agent:a,agent:b"
    assert other["authorization"] == "bearer of_other"
    assert "traceparent" not in other


async def test_a_key_that_no_header_carries_is_nobodys(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.say(_HEALTHY)

    async with a_daemon(tmp_path / "home", script):
        with pytest.raises(Unauthenticated):
            async with open_session({**environ, "OPENFANG_API_KEY": "schl\xfcssel"}):
                pass


async def test_a_daemon_that_dies_before_the_call_leaves_it_unmade(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async def script(peer: Peer) -> None:
        line, _, _ = await peer.request()
        if "/api/health" in line:
            peer.say(_HEALTHY)

    async with a_daemon(tmp_path / "home", script):
        with pytest.raises(DaemonUnreachable):
            async with open_session(environ) as session:
                await session.call("file_write", {"path": "a", "content": "b"})
    async with open_local(environ) as local:
        events = await local.search(Search())
    assert {event.event_type for event in events} == {"key_created"}
