"""The stdio transport against a real child that behaves, and one that does not."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from anyio import to_thread
from tests.host.confining import alive
from tests.sources.mcp.conftest import Ear, connected, launch

from openfang.protocols.mcp.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, BadAnswer, RpcError
from openfang.sources.mcp.dialogue import ASKED_AT_ONCE
from openfang.sources.mcp.stdio import StdioTransport, open_stdio
from openfang.sources.mcp.transport import Lost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.sources.mcp.connection import Connection

pytestmark = pytest.mark.requirement("C3.1")
NOTHING: dict[str, Any] = {}


def stdio(connection: Connection) -> StdioTransport:
    assert isinstance(connection.transport, StdioTransport)
    return connection.transport


def words(result: Mapping[str, Any]) -> str:
    return result["content"][0]["text"]


@pytest.mark.requirement("C3.4")
async def test_a_result_is_given_as_it_came() -> None:
    async with connected("handshake") as connection:
        result = await connection.call("echo", {"text": "grüße \u2028"}, meta={"a": {"b": None}})
    assert result == {
        "content": [{"type": "text", "text": "grüße \u2028"}],
        "structuredContent": {
            "arguments": {"text": "grüße \u2028"},
            "meta": {"a": {"b": None}},
        },
        "x-unknown": [1, {"kept": None}],
    }


async def test_many_requests_are_in_flight_and_each_gets_its_own_answer() -> None:
    answers: dict[int, str] = {}
    async with connected("handshake") as connection:

        async def call(index: int) -> None:
            answers[index] = words(await connection.call("echo", {"text": f"call {index}"}))

        async with anyio.create_task_group() as group:
            for index in range(300):
                group.start_soon(call, index)
    assert answers == {index: f"call {index}" for index in range(300)}


@pytest.mark.requirement("C3.5")
async def test_a_call_that_is_given_up_is_cancelled_at_the_server() -> None:
    ear = Ear()
    async with connected("handshake", ear=ear) as connection:
        async with anyio.create_task_group() as group:
            group.start_soon(connection.call, "wait", NOTHING)
            await ear.hears("notifications/message")
            group.cancel_scope.cancel()
        report = await connection.call("report", {})
    (cancelled,) = report["structuredContent"]["cancelled"]
    assert cancelled["requestId"] == ear.notes[0][1]["id"]


@pytest.mark.requirement("C3.5")
async def test_a_timeout_is_a_cancellation_too() -> None:
    async with connected("handshake") as connection:
        with pytest.raises(TimeoutError), anyio.fail_after(0.1):
            await connection.call("wait", {})
        report = await connection.call("report", {})
    assert len(report["structuredContent"]["cancelled"]) == 1


async def test_initialize_is_never_cancelled() -> None:
    async with open_stdio(
        launch("handshake", "mute=initialize"), Ear(), complained=print
    ) as transport:
        with pytest.raises(TimeoutError), anyio.fail_after(0.2):
            await transport.request("initialize", {"protocolVersion": "2025-11-25"})
        report = await transport.request("tools/call", {"name": "report"})
    assert report["structuredContent"]["cancelled"] == []


@pytest.mark.requirement("C3.5")
async def test_progress_reaches_the_call_that_it_belongs_to_before_its_answer() -> None:
    ear = Ear()
    async with connected("handshake", ear=ear) as connection:

        async def call(steps: int) -> None:
            own = Ear()
            await connection.call("progress", {"steps": steps}, errand=own)
            assert {method for method, _ in own.notes} == {"notifications/progress"}
            assert [params["progress"] for _, params in own.notes] == list(range(steps))

        async with anyio.create_task_group() as group:
            group.start_soon(call, 50)
            group.start_soon(call, 20)
    assert ear.notes == []


async def test_progress_whose_token_comes_back_as_text_is_heard() -> None:
    own = Ear()
    async with connected("handshake") as connection:
        await connection.call("progress", {"steps": 3, "as_text": True}, errand=own)
    assert [params["progress"] for _, params in own.notes] == [0, 1, 2]


async def test_a_listener_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Ear):
        def told(self, method: str, params: Mapping[str, Any]) -> None:
            super().told(method, params)
            raise ZeroDivisionError

    async with connected("handshake") as connection:
        result = await connection.call("progress", {"steps": 2}, errand=Failing())
    assert words(result) == "done"
    assert "notifications/progress" in caplog.text


async def asked(connection: Connection, method: str, times: int = 1) -> list[dict[str, Any]]:
    result = await connection.call("ask", {"method": method, "times": times})
    return cast("list[dict[str, Any]]", result["structuredContent"]["replies"])


@pytest.mark.requirement("C3.10")
async def test_the_servers_own_requests_are_answered() -> None:
    ear = Ear(roots_list={"roots": [{"uri": "file:///"}]})
    async with connected("handshake", ear=ear) as connection:
        (reply,) = await asked(connection, "roots/list")
        assert reply["result"] == {"roots": [{"uri": "file:///"}]}
        (reply,) = await asked(connection, "ping")
        assert reply["result"] == {}
        (reply,) = await asked(connection, "sampling/createMessage")
        assert reply["error"]["code"] == METHOD_NOT_FOUND
        (reply,) = await asked(connection, "bug")
        assert reply["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}


async def test_who_offers_nothing_refuses_everything_but_a_ping() -> None:
    async with open_stdio(launch("handshake"), Ear(), complained=print) as transport:
        call = {"name": "ask", "arguments": {"method": "roots/list"}}
        result = await transport.request("tools/call", call)
        assert result["structuredContent"]["replies"][0]["error"]["code"] == METHOD_NOT_FOUND
        call = {"name": "ask", "arguments": {"method": "ping"}}
        result = await transport.request("tools/call", call)
        assert result["structuredContent"]["replies"][0]["result"] == {}


async def test_a_storm_of_requests_is_answered_sixteen_at_once() -> None:
    ear = Ear(roots_list={"roots": []})
    ear.hold = anyio.Event()
    replies: list[dict[str, Any]] = []
    async with connected("handshake", ear=ear) as connection:

        async def storm() -> None:
            replies.extend(await asked(connection, "roots/list", 40))

        async with anyio.create_task_group() as group:
            group.start_soon(storm)
            await ear.hears("asked", ASKED_AT_ONCE)
            ear.hold.set()
    # What comes after the first have been answered is answered too; what came before is refused.
    assert ear.most_at_once == ASKED_AT_ONCE
    answered = sum("result" in reply for reply in replies)
    refused = [reply["error"]["code"] for reply in replies if "error" in reply]
    assert answered >= ASKED_AT_ONCE
    assert refused == [INTERNAL_ERROR] * (40 - answered)


async def test_a_request_that_the_server_takes_back_is_not_answered() -> None:
    ear = Ear()
    ear.hold = anyio.Event()
    async with connected("handshake", ear=ear) as connection:
        await connection.call("withdraw", {})
        with anyio.fail_after(30):
            await ear.given_up.wait()
        assert words(await connection.call("echo", {"text": "still here"})) == "still here"


async def test_unknown_and_duplicate_answers_are_dropped() -> None:
    async with connected("handshake") as connection:
        assert words(await connection.call("twice", {})) == "first"
        await connection.ping()


async def test_noise_between_messages_is_no_reason_to_give_up() -> None:
    ear = Ear()
    async with connected("handshake", ear=ear) as connection:
        assert words(await connection.call("noise", {})) == "caf\ufffd"
        child = stdio(connection).child
        assert child is not None
        assert child.noise == 6
    assert ear.notes == [("notifications/message", {})]
    assert "[stdout] Starting up..." in ear.lines


async def test_a_batch_is_understood() -> None:
    ear = Ear()
    async with connected("handshake", "only=2025-03-26", ear=ear) as connection:
        assert connection.version == "2025-03-26"
        assert words(await connection.call("batch", {})) == "in a batch"
    assert ear.notes == [("notifications/tools/list_changed", {})]


async def test_a_line_that_comes_byte_by_byte_is_read() -> None:
    async with connected("handshake") as connection:
        assert words(await connection.call("drip", {})) == "drip"


@pytest.mark.parametrize("kind", ["list", "null", "nothing"])
async def test_an_answer_in_the_wrong_shape_fails_its_call_only(kind: str) -> None:
    async with connected("handshake") as connection:
        with pytest.raises(BadAnswer):
            await connection.call("wrong", {"kind": kind})
        assert words(await connection.call("echo", {"text": "on"})) == "on"


@pytest.mark.parametrize("kind", ["error_text", "error_code"])
async def test_an_error_in_the_wrong_shape_is_an_error(kind: str) -> None:
    async with connected("handshake") as connection:
        with pytest.raises(RpcError):
            await connection.call("wrong", {"kind": kind})


async def test_the_servers_error_is_raised_with_its_code_and_data() -> None:
    async with connected("handshake") as connection:
        with pytest.raises(RpcError) as refused:
            await connection.call("refuse", {})
    error = refused.value
    assert (error.code, error.message, error.data) == (-32050, "refused", {"why": [1, 2]})


@pytest.mark.requirement("C3.7")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"code": 4}, "It ended with exit code 4"),
        ({"signal": int(signal.SIGSEGV)}, "It was ended by the signal SIGSEGV"),
    ],
)
async def test_a_death_fails_all_calls_in_flight_at_once(how: dict[str, int], reason: str) -> None:
    assert await seconds_to_fail(how, reason) < 1


async def seconds_to_fail(how: dict[str, int], reason: str) -> float:
    failed: list[float] = []
    ear = Ear()
    async with connected("handshake", ear=ear) as connection:

        async def call(name: str, arguments: dict[str, int]) -> None:
            with pytest.raises(Lost, match=reason):
                await connection.call(name, arguments)
            failed.append(time.perf_counter())

        async with anyio.create_task_group() as group:
            for _ in range(9):
                group.start_soon(call, "wait", NOTHING)
            await ear.hears("notifications/message", 9)
            failed.append(time.perf_counter())
            group.start_soon(call, "die", how)
        assert len(failed) == 11
        assert connection.lost.is_set()
        assert connection.reason == reason
        with pytest.raises(Lost, match=reason):
            await connection.call("echo", {"text": "too late"})
    return failed[-1] - failed[0]


@pytest.mark.requirement("C3.7")
async def test_what_it_said_before_its_death_counts() -> None:
    async with connected("handshake") as connection:
        assert words(await connection.call("die", {"answer_first": True})) == "last words"
        with anyio.fail_after(30):
            await connection.lost.wait()


async def test_a_line_without_end_ends_the_connection() -> None:
    async with connected("handshake") as connection:
        with anyio.fail_after(30), pytest.raises(Lost, match="48000000 bytes"):
            await connection.call("endless", {"megabytes": 64})


async def test_a_result_of_32_megabytes_is_read_whole() -> None:
    async with connected("handshake") as connection:
        with anyio.fail_after(30):
            result = await connection.call("big", {"size": 32_000_000})
        assert len(words(result)) == 32_000_000


@pytest.mark.requirement("C3.8")
async def test_a_flood_on_standard_error_is_thinned_and_holds_up_nobody() -> None:
    ear = Ear()
    async with connected("handshake", ear=ear) as connection:
        with anyio.fail_after(20):
            await connection.call("complain", {"lines": 20_000, "length": 50})
    assert ear.lines[0].startswith("line 0 ")
    assert len(ear.lines) < 5000


@pytest.mark.requirement("C3.8")
async def test_nothing_of_a_stubborn_server_is_left_a_second_after_the_end() -> None:
    async with connected("handshake", "stubborn") as connection:
        result = await connection.call("spawn", {})
        child = stdio(connection).child
        assert child is not None
        began = time.perf_counter()
    assert time.perf_counter() - began < 10
    for pid in (child.process.pid, result["structuredContent"]["pid"]):
        assert not await to_thread.run_sync(alive, pid)


async def test_an_error_of_the_one_who_holds_the_connection_leaves_it_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with connected("handshake"):
            raise ZeroDivisionError


async def test_calls_of_others_fail_when_the_connection_is_closed() -> None:
    ear = Ear()
    failed: list[str] = []

    async def call(connection: Connection) -> None:
        with pytest.raises(Lost) as lost:
            await connection.call("wait", {})
        failed.append(lost.value.reason)

    with anyio.fail_after(20):
        async with (
            anyio.create_task_group() as group,
            connected("handshake", ear=ear) as connection,
        ):
            group.start_soon(call, connection)
            await ear.hears("notifications/message")
    assert failed == ["The connection was closed"]
