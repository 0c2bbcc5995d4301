"""The HTTP transports against real servers on loopback, one of each kind."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import orjson
import pytest
from tests.sources.mcp.conftest import US, Ear
from tests.sources.mcp.peers.web import Modern, Peer, Plain, Session, Sse, serving

from openfang.host.http import HttpClient
from openfang.protocols.mcp.errors import METHOD_NOT_FOUND, RpcError
from openfang.safety.urls import AddressRefused
from openfang.sources.mcp.find import find_http
from openfang.sources.mcp.reach import Reach
from openfang.sources.mcp.spec import Http, ServerSpec
from openfang.sources.mcp.transport import AuthNeeded, Lost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.sources.mcp.connection import Connection
    from openfang.sources.mcp.greeting import Era

pytestmark = pytest.mark.requirement("C3.1")
NOTHING: dict[str, Any] = {}


@asynccontextmanager
async def found(
    url: str,
    ear: Ear | None = None,
    *,
    known: tuple[str, Era] | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncGenerator[Connection]:
    reached = Http(url=url, allow_private=True, headers=headers or {})
    async with (
        HttpClient() as http,
        find_http(
            http, reached, ear or Ear(), client=US, capabilities={}, known=known
        ) as connection,
    ):
        yield connection


@asynccontextmanager
async def connected(peer: Peer, ear: Ear | None = None) -> AsyncGenerator[Connection]:
    async with serving(peer) as url:
        with anyio.fail_after(30):
            async with found(url, ear) as connection:
                yield connection


def words(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


async def call(connection: Connection, tool: str, **arguments: Any) -> str:
    return words(await connection.call(tool, arguments))


@pytest.mark.requirement("C3.3")
@pytest.mark.parametrize(
    ("peer", "kind", "version"),
    [
        (Modern, "streamable", "2026-07-28"),
        (Session, "streamable", "2025-11-25"),
        (Sse, "sse", "2024-11-05"),
        (Plain, "plain", "2024-11-05"),
    ],
)
async def test_each_kind_of_server_is_found_and_called(
    peer: type[Peer], kind: str, version: str
) -> None:
    async with connected(peer()) as connection:
        assert (connection.transport.kind, connection.version) == (kind, version)
        await connection.tools()
        await connection.ping()
        assert await call(connection, "echo", text="grüße") == "grüße"
        assert not connection.lost.is_set()


async def test_the_transports_are_tried_in_order() -> None:
    peer = Plain(initializes=False)
    async with connected(peer) as connection:
        assert connection.transport.kind == "plain"
    assert peer.methods == ["server/discover", "initialize", "GET", "initialize"]


async def test_how_a_server_was_found_is_tried_first() -> None:
    peer = Plain()
    async with serving(peer) as url, found(url, known=("plain", "handshake")) as connection:
        assert connection.transport.kind == "plain"
    assert peer.methods == ["initialize", "notifications/initialized"]


async def test_a_server_that_speaks_nothing_known_is_named_with_all_reasons() -> None:
    peer = Modern()
    for method in ("server/discover", "initialize", "GET"):
        peer.status[method] = (404, {})
    async with serving(peer) as url:
        with pytest.raises(Lost) as lost:
            async with found(url):
                pass
    for part in (url, "Streamable HTTP: ", "HTTP+SSE: ", "plain POST: ", "404"):
        assert part in lost.value.reason


async def test_a_server_that_is_not_there_is_lost_at_once() -> None:
    async with serving(Modern()) as url:
        pass
    with anyio.fail_after(30), pytest.raises(Lost, match="failed"):
        async with found(url):
            pass


async def test_a_key_in_the_address_is_in_no_reason() -> None:
    peer = Modern()
    async with serving(peer) as url:
        secret = f"{url}?key=s3cr3t-%20x&b"
        async with found(secret) as connection:
            for refused in (404, 401):
                peer.status["tools/call"] = (refused, {})
                with pytest.raises(Lost, match=r"mcp\?\*\*\*") as lost:
                    await connection.call("echo", {})
                assert "s3cr3t" not in str(lost.value)
            with pytest.raises(Lost, match=r"\*\*\*"):
                await connection.call("cut", {})
        peer.status = dict.fromkeys(("server/discover", "initialize", "GET"), (404, {}))
        with pytest.raises(Lost) as lost:
            async with found(secret):
                pass
        assert "s3cr3t" not in lost.value.reason
    with pytest.raises(Lost) as lost:
        async with found(secret):
            pass
    assert "s3cr3t" not in lost.value.reason


@pytest.mark.requirement("C3.9")
async def test_a_server_that_moved_to_another_path_is_followed_and_to_another_server_is_not() -> (
    None
):
    peer, other = Modern(), Modern()
    async with serving(peer) as url, serving(other) as elsewhere:
        for method in ("server/discover", "tools/list"):
            peer.moved[method] = "/mcp/"
        async with found(url) as connection:
            assert [tool["name"] for tool in await connection.tools()] == ["echo"]
        peer.moved["server/discover"] = elsewhere
        with pytest.raises(Lost, match="redirects the body"):
            async with found(url):
                pass
    assert other.seen == []


@pytest.mark.requirement("C3.9")
async def test_an_address_of_the_inside_needs_the_operators_word() -> None:
    peer = Modern()
    async with serving(peer) as url, HttpClient() as http:
        for refused in (url, "http://metadata.google.internal/", "http://user@example.com/"):
            with pytest.raises(Lost) as lost:
                async with find_http(http, Http(url=refused), Ear(), client=US, capabilities={}):
                    pass
            assert isinstance(lost.value.__cause__, AddressRefused)
            assert "allow_private" in lost.value.reason or refused != url
    assert peer.seen == []


@pytest.mark.parametrize(("status", "wanted"), [(401, "credentials"), (403, "other credentials")])
async def test_a_server_that_wants_credentials_says_which(status: int, wanted: str) -> None:
    peer = Modern()
    challenge = 'Bearer resource_metadata="https://x/", scope="a"'
    peer.status["server/discover"] = (status, {"WWW-Authenticate": challenge})
    async with serving(peer) as url:
        with pytest.raises(AuthNeeded) as needed:
            async with found(url):
                pass
    assert needed.value.reason.endswith(f" wants {wanted}")
    assert peer.methods == ["server/discover"]


async def test_the_operators_headers_are_sent_and_ours_decide() -> None:
    peer = Modern()
    headers = {"Authorization": "Bearer x", "mcp-method": "fake", "User-Agent": "mine"}
    async with serving(peer) as url, found(url, headers=headers) as connection:
        await connection.tools()
    assert peer.header("tools/list", "Authorization") == "Bearer x"
    assert peer.header("tools/list", "Mcp-Method") == "tools/list"
    assert peer.header("tools/list", "User-Agent") == "mine"


async def test_a_connection_can_be_reached_by_what_is_known_of_a_server() -> None:
    reach = Reach(client=US, capabilities={}, complained=print)
    peer = Session()
    async with serving(peer) as url:
        spec = ServerSpec(name="web", reached=Http(url=url, allow_private=True))
        for _ in range(2):
            async with reach(spec, Ear()) as connection:
                assert connection.era == "handshake"
    assert peer.methods.count("server/discover") == 1


# The modern era


@pytest.mark.requirement("C3.3")
async def test_a_modern_request_carries_its_headers_and_no_session() -> None:
    peer = Modern()
    async with connected(peer) as connection:
        await connection.tools()
        await connection.call("écho", {"text": "x"})
    assert peer.header("tools/call", "MCP-Protocol-Version") == "2026-07-28"
    assert peer.header("tools/call", "Mcp-Name") == "=?base64?w6ljaG8=?="
    assert peer.header("tools/call", "Accept") == "application/json, text/event-stream"
    assert peer.header("tools/call", "Mcp-Session-Id") is None
    assert {"GET", "DELETE", "initialize"} & set(peer.methods) == set()


@pytest.mark.requirement("C3.3")
async def test_marked_arguments_are_mirrored_and_badly_marked_tools_left_out() -> None:
    peer = Modern()
    async with connected(peer) as connection:
        assert [tool["name"] for tool in await connection.tools()] == ["echo"]
        assert list(connection.rejected) == ["bad"]
        assert await call(connection, "echo", text="a", region="eu-1") == "a"
        assert peer.header("tools/call", "Mcp-Param-Region") == "eu-1"
        await call(connection, "echo", text="a")
        assert peer.header("tools/call", "Mcp-Param-Region") is None


@pytest.mark.requirement("C3.3")
async def test_a_tool_that_wants_other_headers_than_before_is_looked_up_again() -> None:
    peer = Modern()
    async with connected(peer) as connection:
        await connection.tools()
        peer.required = "Zone"
        properties = peer.tools[0]["inputSchema"]["properties"]
        properties["region"]["x-mcp-header"] = "Zone"
        assert await call(connection, "echo", text="a", region="eu-1") == "a"
        peer.required = "Never"
        with pytest.raises(RpcError) as refused:
            await call(connection, "echo", text="a", region="eu-1")
        assert refused.value.code == -32020


@pytest.mark.requirement("C3.5")
async def test_a_stream_is_read_as_it_comes() -> None:
    ear, own = Ear(roots_list={}), Ear()
    async with connected(Modern(), ear) as connection:
        result = await connection.call("stream", {}, errand=own)
    assert words(result) == "streamed"
    assert [params.get("progress") for _, params in own.notes] == [0, 1, 2, None]
    assert own.notes[3] == ("notifications/message", {"data": "log"})
    assert ear.notes == []


async def test_an_answer_is_enough_although_its_stream_stays_open() -> None:
    peer = Modern()
    async with connected(peer) as connection:
        assert await call(connection, "stream", linger=True) == "streamed"
        with anyio.fail_after(30):
            await peer.gone.wait()


async def test_an_answer_counts_although_its_stream_breaks_off_after_it() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        number = orjson.loads(await reader.readexactly(length))["id"]
        result = {"supportedVersions": ["2026-07-28"], **NOTHING}
        event = orjson.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Content-Length: 9999\r\n\r\ndata: " + event + b"\n\n")
        writer.close()

    server = await asyncio.start_server(half, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with found(f"http://127.0.0.1:{port}/") as connection:
            for _ in range(3):
                await connection.ping()
            assert connection.era == "modern"


@pytest.mark.requirement("C3.5")
@pytest.mark.parametrize("tool", ["wait", "hold"])
async def test_to_give_up_on_a_modern_call_is_to_hang_up(tool: str) -> None:
    peer = Modern()
    async with connected(peer) as connection:
        async with anyio.create_task_group() as group:
            group.start_soon(connection.call, tool, NOTHING)
            await peer.called.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            await peer.gone.wait()
        assert await call(connection, "echo", text="on") == "on"
    assert "notifications/cancelled" not in peer.methods


async def test_calls_at_once_do_not_wait_for_each_other() -> None:
    peer = Modern()
    answers: list[str] = []
    async with connected(peer) as connection:

        async def one(index: int) -> None:
            answers.append(await call(connection, "echo", text=str(index)))

        async with anyio.create_task_group() as group:
            group.start_soon(connection.call, "wait", NOTHING)
            await peer.called.wait()
            async with anyio.create_task_group() as many:
                for index in range(20):
                    many.start_soon(one, index)
            group.cancel_scope.cancel()
    assert sorted(map(int, answers)) == list(range(20))


async def test_a_stream_that_ends_without_an_answer_is_lost_for_that_call_only() -> None:
    async with connected(Modern()) as connection:
        with pytest.raises(Lost, match="no answer to tools/call"):
            await connection.call("cut", {})
        assert await call(connection, "echo", text="on") == "on"
        assert not connection.lost.is_set()


async def test_an_error_is_raised_whatever_its_status() -> None:
    async with connected(Modern()) as connection:
        with pytest.raises(RpcError) as refused:
            await connection.request("no/such")
        assert refused.value.code == METHOD_NOT_FOUND


@pytest.mark.parametrize("status", [404, 500, 503])
async def test_a_status_without_a_message_is_lost_for_that_call_only(status: int) -> None:
    peer = Modern()
    async with connected(peer) as connection:
        peer.status["tools/call"] = (status, {})
        with pytest.raises(Lost, match=str(status)):
            await connection.call("echo", {})
        del peer.status["tools/call"]
        assert await call(connection, "echo", text="on") == "on"


async def test_an_answer_over_the_limit_is_not_read_to_its_end() -> None:
    async with connected(Modern()) as connection:
        with pytest.raises(Lost, match="48000000 bytes"):
            await connection.call("echo", {"text": "x" * 1_000_000, "times": 60})
        assert len(await call(connection, "echo", text="x" * 1_000_000, times=20)) == 20_000_000


@pytest.mark.requirement("C3.6")
async def test_changes_are_heard_by_listening() -> None:
    ear = Ear()
    async with connected(Modern(), ear) as connection:
        await connection.listen()
    assert "notifications/tools/list_changed" in [method for method, _ in ear.notes]


# The handshake era


@pytest.mark.requirement("C3.3")
async def test_a_session_is_kept_and_ended() -> None:
    peer = Session("2025-06-18")
    async with connected(peer) as connection:
        await connection.tools()
        await peer.listening.wait()
    assert peer.header("initialize", "MCP-Protocol-Version") is None
    assert peer.header("initialize", "Mcp-Session-Id") is None
    for method in ("notifications/initialized", "tools/list", "GET", "DELETE"):
        assert peer.header(method, "Mcp-Session-Id") == "session-1"
        assert peer.header(method, "MCP-Protocol-Version") == "2025-06-18"
        assert peer.header(method, "Mcp-Method") is None
    assert peer.methods[-1] == "DELETE"


@pytest.mark.requirement("C3.6")
async def test_the_servers_own_messages_are_heard_and_the_stream_taken_up_again() -> None:
    peer, ear = Session(), Ear()
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    async with connected(peer, ear) as connection:
        await peer.listening.wait()
        await connection.call("push", {"messages": [changed, None]})
        await ear.hears("notifications/tools/list_changed")
        await connection.call("push", {"messages": [changed]})
        await ear.hears("notifications/tools/list_changed", 2)
    assert peer.header("GET", "Last-Event-ID") == "news-1"


@pytest.mark.parametrize("status", [400, 404, 405, 200])
async def test_a_server_without_a_stream_of_its_own_works_as_well(status: int) -> None:
    peer = Session()
    peer.status["GET"] = (status, {})
    async with connected(peer) as connection:
        await peer.sees("GET")
        for _ in range(3):
            assert await call(connection, "echo", text="on") == "on"
        assert not connection.lost.is_set()
    assert peer.methods.count("GET") == 1


async def test_a_server_that_takes_no_answers_to_its_questions_harms_nobody() -> None:
    peer = Session()
    ear = Ear(roots_list={})
    async with connected(peer, ear) as connection:
        peer.refuses_replies = True
        ask = {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}
        await peer.listening.wait()
        await connection.call("push", {"messages": [ask, ask]})
        assert (await peer.replies.get())["result"] == {}
        assert await call(connection, "echo", text="on") == "on"


async def test_an_answer_whose_stream_broke_off_is_taken_up_again() -> None:
    peer = Session()
    async with connected(peer) as connection:
        await peer.listening.wait()
        assert await call(connection, "broken") == "resumed"
    assert peer.header("GET", "Last-Event-ID") == "place"


@pytest.mark.requirement("C3.10")
async def test_the_servers_requests_come_on_the_stream_of_a_call() -> None:
    ear = Ear(roots_list={"roots": []})
    async with connected(Session(), ear) as connection:
        result = await connection.call("ask", {})
    assert result["structuredContent"]["result"] == {"roots": []}


@pytest.mark.requirement("C3.5")
async def test_a_call_of_a_session_is_cancelled_by_a_message() -> None:
    peer = Session()
    async with connected(peer) as connection:
        async with anyio.create_task_group() as group:
            group.start_soon(connection.call, "wait", NOTHING)
            await peer.called.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            await peer.sees("notifications/cancelled")
    assert dict(peer.seen)["notifications/cancelled"]["params"]["requestId"] == 3


@pytest.mark.requirement("C3.7")
@pytest.mark.parametrize("status", [404, 400])
async def test_a_forgotten_session_is_the_end_of_the_connection(status: int) -> None:
    peer = Session()
    async with connected(peer) as connection:
        peer.forgotten = status
        with pytest.raises(Lost, match="forgotten"):
            await connection.call("echo", {})
        assert connection.lost.is_set()
        assert "forgotten" in connection.reason
    assert "DELETE" not in peer.methods


async def test_a_request_that_a_session_refuses_is_only_refused() -> None:
    async with connected(Session()) as connection:
        with pytest.raises(RpcError) as refused:
            await connection.call("wrong", {})
        assert refused.value.code == -32050
        assert not connection.lost.is_set()


# HTTP+SSE and plain POST


async def test_the_first_revision_over_http_brings_progress_and_changes() -> None:
    ear, own = Ear(), Ear()
    async with connected(Sse(), ear) as connection:
        result = await connection.call("echo", {"text": "x"}, errand=own)
    assert words(result) == "x"
    assert [method for method, _ in own.notes] == ["notifications/progress"]
    assert [method for method, _ in ear.notes] == ["notifications/tools/list_changed"]


@pytest.mark.requirement("C3.7")
async def test_the_end_of_the_stream_is_the_end_of_the_connection() -> None:
    async with connected(Sse()) as connection:
        with pytest.raises(Lost, match="ended its stream"):
            await connection.call("end", {})
        assert connection.lost.is_set()


@pytest.mark.requirement("C3.5")
async def test_a_call_over_the_old_stream_is_cancelled_by_a_message() -> None:
    peer = Sse()
    async with connected(peer) as connection:
        async with anyio.create_task_group() as group:
            group.start_soon(connection.call, "wait", NOTHING)
            await peer.called.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            await peer.gone.wait()


@pytest.mark.requirement("C3.9")
@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:9/messages", "//other.example/messages", "http://[::1]/x"]
)
async def test_an_endpoint_of_another_server_is_refused(endpoint: str) -> None:
    async with serving(Sse(endpoint)) as url:
        with pytest.raises(Lost, match="another server"):
            async with found(url):
                pass


async def test_a_server_that_knows_no_notifications_is_not_bothered_by_one() -> None:
    peer = Plain()
    async with connected(peer) as connection:
        await connection.transport.notify("notifications/whatever")
        assert await call(connection, "echo", text="on") == "on"
