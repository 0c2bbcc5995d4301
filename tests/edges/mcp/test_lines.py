"""One server over a pair of streams: what a client sends as bytes, and what comes back."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from tests.edges.mcp.shelf import MODERN, Shelf, Talker, line

from openfang.core.news import Listed
from openfang.core.progress import Progress
from openfang.core.results import Result, text_result
from openfang.edges.mcp.lines import Leaving, LineLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.session import Options

pytestmark = pytest.mark.requirement("C4.2", "C4.3")


async def echo(arguments: Mapping[str, Any], options: Options) -> Result:
    del options
    return text_result(str(arguments.get("text", "")))


async def big(arguments: Mapping[str, Any], options: Options) -> Result:
    del options
    return text_result("x" * int(arguments["size"]))


async def steps(arguments: Mapping[str, Any], options: Options) -> Result:
    for number in range(int(arguments["count"])):
        if options.progress is not None:
            options.progress(Progress(progress=number + 1))
    return text_result("done")


async def curious(arguments: Mapping[str, Any], options: Options) -> Result:
    assert options.client is not None
    answer = await options.client.ask("elicitation/create", {"message": arguments["question"]})
    return text_result(json.dumps(answer.structured or answer.fault))


async def broken(arguments: Mapping[str, Any], options: Options) -> Result:
    del arguments, options
    raise ZeroDivisionError


SHELF = {"echo": echo, "big": big, "steps": steps, "curious": curious, "broken": broken}


class Waiting:
    """A tool that ends when it is told to, and says whether it was cancelled."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go_on = anyio.Event()
        self.cancelled = anyio.Event()

    async def __call__(self, arguments: Mapping[str, Any], options: Options) -> Result:
        del arguments, options
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return text_result("waited")


def text(answer: Any) -> str:
    return answer["result"]["content"][0]["text"]


def code(answer: Any) -> tuple[Any, int]:
    return answer["id"], answer["error"]["code"]


async def test_each_message_is_answered_in_its_own_framing() -> None:
    async with line(Shelf(SHELF)) as talker:
        for number, counted in enumerate([False, True, True, False, True, False]):
            talker.ask(number, "ping", counted=counted)
            answer, kind = await talker.framed()
            assert answer == {"jsonrpc": "2.0", "id": number, "result": {}}
            assert kind is counted


async def test_an_answer_that_takes_longer_keeps_the_framing_of_its_request() -> None:
    waiting = Waiting()
    async with line(Shelf({"wait": waiting})) as talker:
        params = {"name": "wait"}
        talker.ask(1, "tools/call", params, counted=True)
        await waiting.begun.wait()
        talker.ask(2, "ping")
        assert await talker.framed() == ({"jsonrpc": "2.0", "id": 2, "result": {}}, False)
        waiting.go_on.set()
        answer, counted = await talker.framed()
        assert (text(answer), counted) == ("waited", True)


@pytest.mark.parametrize("counted", [False, True])
async def test_a_message_over_ten_megabytes_is_refused_by_its_id_and_the_next_is_served(
    counted: bool,  # noqa: FBT001 - a case
) -> None:
    async with line(Shelf(SHELF)) as talker:
        for size, expected in ((10_000_000, 0), (10_000_001, -32600)):
            empty = {
                "jsonrpc": "2.0",
                "id": size,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"pad": ""}},
            }
            pad = "x" * (size - len(json.dumps(empty)))
            empty["params"] = {"name": "echo", "arguments": {"pad": pad}}
            talker.send(empty, counted=counted)
            answer, kind = await talker.framed()
            assert (answer["id"], kind) == (size, counted)
            assert answer.get("error", {"code": 0})["code"] == expected
        await talker.served()


@pytest.mark.parametrize(
    "data",
    [
        b"{\n",
        b"nonsense\n",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"\n',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n',
        b"Content-Length: 3\r\n\r\n{{{",
        b"Content-Length: x\r\n\r\n",
        b"[" * 5000 + b"\n",
        b"\x00\x01\x02\n",
        b"NaN\n",
    ],
)
async def test_bad_json_is_a_parse_error_and_the_next_is_served(data: bytes) -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.raw(data)
        assert code(await talker.heard()) == (None, -32700)
        await talker.served()


@pytest.mark.parametrize(
    ("message", "number"),
    [
        (1, None),
        ("text", None),
        (None, None),
        ({}, None),
        ({"id": 7}, 7),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 3, "method": 4}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": "ping", "params": [1]}, 3),
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], None),
    ],
)
async def test_json_that_is_no_message_is_an_invalid_request(
    message: Any, number: int | None
) -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.send(message)
        assert code(await talker.heard()) == (number, -32600)
        await talker.served()


@pytest.mark.requirement("C4.6")
async def test_unknown_methods_are_not_found_and_notifications_are_never_answered() -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.tell("notifications/nobody/knows", {"a": 1})
        talker.tell("tools/call", {"name": "echo"})
        talker.tell("notifications/cancelled", {"requestId": "nothing"})
        talker.tell("notifications/cancelled")
        talker.send({"jsonrpc": "2.0", "id": 9, "result": {}})
        talker.send({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "no"}})
        talker.ask(1, "no/such")
        assert code(await talker.heard()) == (1, -32601)
        await talker.served()


async def test_a_mistake_of_ours_is_an_internal_error_and_the_next_is_served() -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.call(1, "broken")
        answer = await talker.heard()
        assert code(answer) == (1, -32603)
        assert "Zero" not in json.dumps(answer)
        await talker.served()


async def test_requests_run_side_by_side() -> None:
    first, second = Waiting(), Waiting()
    async with line(Shelf({**SHELF, "first": first, "second": second})) as talker:
        talker.call(1, "first")
        talker.call(2, "second")
        await first.begun.wait()
        await second.begun.wait()
        talker.call(3, "echo", text="hi")
        assert text(await talker.answer(3)) == "hi"
        second.go_on.set()
        await talker.answer(2)
        first.go_on.set()
        await talker.answer(1)


@pytest.mark.requirement("C4.6")
async def test_an_id_in_flight_is_refused_and_free_again_afterwards() -> None:
    waiting = Waiting()
    async with line(Shelf({**SHELF, "wait": waiting})) as talker:
        talker.call(1, "wait")
        await waiting.begun.wait()
        talker.ask(1, "ping")
        assert code(await talker.heard()) == (1, -32600)
        talker.ask("1", "ping")
        await talker.answer("1")
        waiting.go_on.set()
        assert text(await talker.answer(1)) == "waited"
        talker.ask(1, "ping")
        assert (await talker.answer(1))["result"] == {}


async def test_a_cancelled_request_ends_and_is_not_answered() -> None:
    waiting = Waiting()
    async with line(Shelf({**SHELF, "wait": waiting})) as talker:
        talker.call(1, "wait")
        await waiting.begun.wait()
        talker.tell("notifications/cancelled", {"requestId": 1, "reason": "enough"})
        await waiting.cancelled.wait()
        await talker.served()


async def test_more_requests_than_a_client_may_have_at_once_are_refused() -> None:
    waiting = Waiting()
    limits = LineLimits(at_once=2, unanswered=4000)
    async with line(Shelf({**SHELF, "wait": waiting}), limits) as talker:
        talker.call(1, "wait")
        await waiting.begun.wait()
        talker.call(2, "echo", text="x" * 5000)
        assert code(await talker.heard()) == (2, -32603)
        talker.call(3, "wait")
        talker.ask(4, "ping")
        assert code(await talker.heard()) == (4, -32603)
        waiting.go_on.set()
        assert {(await talker.heard())["id"] for _ in range(2)} == {1, 3}
        await talker.served()


async def test_pings_by_the_thousand_are_all_answered() -> None:
    count = 5000
    async with line(Shelf(SHELF)) as talker:
        for number in range(count):
            talker.ask(number, "ping")
        answers = [await talker.heard() for _ in range(count)]
        assert [answer["id"] for answer in answers] == list(range(count))
        assert all(answer["result"] == {} for answer in answers)


@pytest.mark.requirement("C4.1", "C4.2")
async def test_both_eras_are_served_on_one_connection() -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.ask(1, "server/discover", {"_meta": MODERN})
        assert (await talker.answer(1))["result"]["supportedVersions"] == ["2026-07-28"]
        assert (await talker.greet("2025-06-18"))["protocolVersion"] == "2025-06-18"
        call = {"name": "echo", "arguments": {"text": "hi"}}
        talker.ask(2, "tools/call", call)
        old = await talker.answer(2)
        talker.ask(3, "tools/call", {**call, "_meta": MODERN})
        new = await talker.answer(3)
        assert text(old) == text(new) == "hi"
        assert "resultType" not in old["result"]
        assert new["result"]["resultType"] == "complete"
        talker.ask(4, "ping", {"_meta": MODERN})
        assert code(await talker.heard()) == (4, -32601)
        await talker.served()


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({**MODERN, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}, -32022),
        ({**MODERN, "io.modelcontextprotocol/protocolVersion": 3}, -32602),
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, -32602),
        ({}, -32602),
    ],
)
async def test_a_modern_request_that_does_not_say_who_asks_is_refused(
    meta: dict[str, Any], expected: int
) -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.ask(1, "server/discover", {"_meta": meta})
        assert code(await talker.heard()) == (1, expected)
        await talker.served()


async def test_who_names_neither_revision_nor_itself_is_served_as_of_the_first() -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.ask(1, "initialize")
        answer = await talker.answer(1)
        assert answer["result"]["protocolVersion"] == "2024-11-05"
        assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
        talker.ask(2, "tools/list")
        assert len((await talker.answer(2))["result"]["tools"]) == len(SHELF)


async def test_what_is_sent_without_waiting_for_the_greeting_is_part_of_that_talk() -> None:
    async with line(Shelf(SHELF)) as talker:
        talker.ask(1, "initialize", {"protocolVersion": "2025-03-26"})
        talker.tell("notifications/initialized")
        talker.send([{"jsonrpc": "2.0", "id": 2, "method": "ping"}])
        assert (await talker.heard())["id"] == 1
        assert await talker.heard() == [{"jsonrpc": "2.0", "id": 2, "result": {}}]


async def test_a_batch_is_answered_as_one_in_the_revision_that_has_them() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet("2025-03-26")
        batch: list[Any] = [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/nothing"},
            {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
            7,
        ]
        talker.send(batch, counted=True)
        answers, counted = await talker.framed()
        assert counted
        assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert [code(one) for one in answers[1:]] == [
            (2, -32601),
            (1, -32600),
            (3, -32600),
            (None, -32600),
        ]
        talker.send([{"jsonrpc": "2.0", "method": "notifications/nothing"}])
        await talker.served()


async def test_the_refusal_of_a_batch_names_the_requests_that_have_no_other_answer() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet("2025-06-18")
        pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, "b")]
        talker.send([*pings, {"jsonrpc": "2.0", "method": "notifications/nothing"}, 7])
        refusal = await talker.heard()
        assert code(refusal) == (None, -32600)
        assert refusal["error"]["data"] == {"requests": [1, "b"]}
        await talker.served()


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/list"}', 5),
        (b'{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}', 6),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"\\u0061":2}}', 7),
        (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":123456789012345678901}}', 8),
        (b'{"jsonrpc":"2.0","id":123456789012345678901,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","method":"x","method":"notifications/initialized"}', None),
        (b'{"jsonrpc":"2.0","id":9,"method":"x","method":"initialize","params":{}}', 9),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}]', None),
    ],
)
async def test_what_two_readers_could_read_otherwise_is_refused_as_over_http(
    raw: bytes, number: int | None
) -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet("2025-03-26")
        talker.raw(raw + b"\n")
        assert code(await talker.heard()) == (number, -32600)
        await talker.served()


async def test_an_answer_that_two_readers_could_read_otherwise_answers_nothing() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet(elicitation={})
        talker.call(1, "curious", question="who?")
        asked = (await talker.heard())["id"]
        talker.raw(b'{"jsonrpc":"2.0","id":"%b","result":{"a":1,"a":2}}\n' % asked.encode())
        assert json.loads(text(await talker.answer(1)))["code"] == -32600


async def test_progress_comes_before_the_answer() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet()
        params = {"name": "steps", "arguments": {"count": 3}, "_meta": {"progressToken": "p"}}
        talker.ask(1, "tools/call", params)
        told = [await talker.heard() for _ in range(3)]
        assert [one["params"]["progress"] for one in told] == [1, 2, 3]
        assert {one["params"]["progressToken"] for one in told} == {"p"}
        await talker.answer(1)


@pytest.mark.requirement("C3.10")
async def test_a_question_reaches_the_client_and_its_answer_the_tool() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet(elicitation={})
        asked: list[Any] = []
        for number in (1, 2):
            talker.call(number, "curious", question=f"which {number}?")
            asked.append(await talker.heard())
        assert [one["method"] for one in asked] == ["elicitation/create"] * 2
        assert asked[0]["id"] != asked[1]["id"]
        for one in reversed(asked):
            result = {"action": "accept", "content": {"to": one["params"]["message"]}}
            talker.send({"jsonrpc": "2.0", "id": one["id"], "result": result})
        answers = [await talker.answer(2), await talker.answer(1)]
        assert [json.loads(text(one))["content"]["to"] for one in answers] == [
            "which 2?",
            "which 1?",
        ]


@pytest.mark.requirement("C3.10")
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"error": {"code": -1, "message": "I will not"}}, -1),
        ({"result": 7}, -32603),
        ({}, -32600),
    ],
)
async def test_an_error_or_nonsense_in_place_of_an_answer_is_told_to_the_tool(
    reply: dict[str, Any], expected: int
) -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet(elicitation={})
        talker.call(1, "curious", question="which?")
        asked = await talker.heard()
        talker.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
        assert json.loads(text(await talker.answer(1)))["code"] == expected


@pytest.mark.requirement("C3.10")
async def test_in_the_modern_era_a_question_is_a_result_and_its_answer_a_retry() -> None:
    able: dict[str, Any] = {
        **MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    call = {"name": "curious", "arguments": {"question": "which?"}, "_meta": able}
    async with line(Shelf(SHELF)) as talker:
        talker.ask(1, "tools/call", call)
        asked = (await talker.answer(1))["result"]
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        given = {key: {"action": "accept", "content": {"to": "that"}}}
        more = {"inputResponses": given, "requestState": asked["requestState"]}
        talker.ask(2, "tools/call", {**call, **more})
        assert json.loads(text(await talker.answer(2))) == given[key]


async def test_an_answer_that_is_too_long_is_an_error_for_who_asked() -> None:
    async with line(Shelf(SHELF), LineLimits(message=4000)) as talker:
        await talker.greet(elicitation={})
        talker.call(1, "curious", question="which?")
        asked = await talker.heard()
        result = {"action": "accept", "content": {"pad": "x" * 5000}}
        talker.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        assert json.loads(text(await talker.answer(1)))["code"] == -32600


async def test_a_question_is_taken_back_when_its_call_is_cancelled() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet(elicitation={})
        talker.call(1, "curious", question="which?")
        asked = await talker.heard()
        talker.tell("notifications/cancelled", {"requestId": 1})
        told = await talker.heard()
        assert told["method"] == "notifications/cancelled"
        assert told["params"]["requestId"] == asked["id"]
        talker.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        await talker.served()


@pytest.mark.requirement("C4.1", "C4.5")
async def test_changes_are_told_while_the_talk_lasts() -> None:
    shelf = Shelf(SHELF)
    async with line(shelf) as talker:
        assert not shelf.hearers
        await talker.greet()
        await talker.served()
        shelf.publish(Listed.TOOLS)
        assert (await talker.heard())["method"] == "notifications/tools/list_changed"
        await talker.greet("2025-06-18")
        await talker.served()
        assert len(shelf.hearers) == 1


async def test_a_modern_subscription_runs_beside_and_ends_with_the_client() -> None:
    shelf = Shelf(SHELF)
    async with line(shelf) as talker:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": MODERN}
        talker.ask("sub", "subscriptions/listen", wanted)
        assert (await talker.heard())["method"] == "notifications/subscriptions/acknowledged"
        talker.ask(2, "server/discover", {"_meta": MODERN})
        await talker.answer(2)
        shelf.publish(Listed.TOOLS)
        told = await talker.heard()
        assert told["method"] == "notifications/tools/list_changed"
        talker.hang_up()
        with anyio.fail_after(30):
            assert await talker.over() == b""


async def test_after_the_end_of_its_input_a_client_gets_what_it_asked_for() -> None:
    waiting = Waiting()
    async with line(Shelf({**SHELF, "wait": waiting})) as talker:
        talker.call(1, "wait")
        await waiting.begun.wait()
        talker.raw(b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
        talker.hang_up()
        assert (await talker.heard())["id"] == 2
        waiting.go_on.set()
        assert json.loads(await talker.over())["id"] == 1


async def test_what_takes_too_long_after_the_end_of_the_input_is_cancelled() -> None:
    waiting = Waiting()
    limits = LineLimits(drain_seconds=0.1)
    async with line(Shelf({"wait": waiting}), limits) as talker:
        talker.call(1, "wait")
        await waiting.begun.wait()
        talker.hang_up()
        await waiting.cancelled.wait()
        assert await talker.over() == b""


async def test_a_question_that_is_open_when_the_input_ends_is_answered_for_the_client() -> None:
    async with line(Shelf(SHELF)) as talker:
        await talker.greet(elicitation={})
        talker.call(1, "curious", question="which?")
        await talker.heard()
        talker.hang_up()
        answer = await talker.answer(1)
        assert json.loads(text(answer))["code"] == -32603


async def keep_asking(talker: Talker) -> None:
    while True:
        talker.ask("more", "ping")
        await talker.writer.drain()
        await anyio.lowlevel.checkpoint()


async def test_a_client_that_takes_nothing_is_cut_off_before_it_takes_all_memory() -> None:
    limits = LineLimits(full=1 << 16, most=1 << 20)
    async with line(Shelf(SHELF), limits) as talker:
        for number in range(20):
            talker.call(number, "big", size=400_000)
        with pytest.raises(ConnectionError):
            await keep_asking(talker)


async def test_a_client_that_is_slow_gets_everything_but_what_can_be_spared() -> None:
    limits = LineLimits(full=1 << 16, most=1 << 24)
    async with line(Shelf(SHELF), limits) as talker:
        await talker.greet()
        for number in range(10):
            params = {"name": "big", "arguments": {"size": 200_000}}
            talker.ask(number, "tools/call", params)
        many = {"name": "steps", "arguments": {"count": 5000}, "_meta": {"progressToken": 1}}
        talker.ask("steps", "tools/call", many)
        seen = 0
        while (message := await talker.heard()).get("id") != "steps":
            seen += message.get("method") == "notifications/progress"
        assert seen < 5000
        await talker.served()


async def test_whoever_leaves_asks_the_client_to_hang_up_and_answers_what_it_asked() -> None:
    waiting, stop = Waiting(), anyio.Event()
    leaving = Leaving(stop=stop, farewell=b'{"openfang":"bye"}')
    async with line(Shelf({**SHELF, "wait": waiting}), leaving=leaving) as talker:
        talker.call(1, "wait")
        await waiting.begun.wait()
        stop.set()
        assert await talker.heard() == {"openfang": "bye"}
        talker.ask(2, "ping")
        assert (await talker.heard())["id"] == 2
        talker.hang_up()
        waiting.go_on.set()
        assert json.loads(await talker.over())["id"] == 1


async def test_whoever_leaves_does_not_wait_for_a_client_that_wants_nothing() -> None:
    stop = anyio.Event()
    async with line(Shelf(SHELF), leaving=Leaving(stop=stop, farewell=b"{}")) as talker:
        await talker.greet()
        stop.set()
        assert await talker.over() == b"{}\n"


IDS: list[Any] = [None, 1.5, True, [], {}]
METHODS: list[Any] = ["ping", "tools/list", "tools/call", "initialize", "", 7, None]
PARAMS: list[Any] = [{}, {"name": "echo"}, [], None, {"_meta": 3}, {"_meta": MODERN}]


def garbled(chance: random.Random, number: int) -> bytes:
    """A message with something wrong with it, or nothing."""
    message: Any = {
        "jsonrpc": "2.0",
        "id": chance.choice([number, str(number), *IDS]),
        "method": chance.choice(METHODS),
        "params": chance.choice(PARAMS),
    }
    for key in list(message):
        if chance.random() < 0.2:
            del message[key]
    if chance.random() < 0.1:
        message = [message] * chance.randrange(3)
    body = bytearray(json.dumps(message).encode())
    if chance.random() < 0.4:
        for _ in range(chance.randrange(1, 5)):
            body[chance.randrange(len(body))] = chance.choice(b'\x00\xff{}[]",:a1 \n')
    if chance.random() < 0.1:
        length = len(body) + chance.choice([0, 0, 0, -3])
        return b"Content-Length: %d\r\n\r\n%b\n" % (max(0, length), bytes(body))
    return bytes(body) + chance.choice([b"\n", b"\r\n", b"\n\n"])


async def test_ten_thousand_garbled_messages_leave_the_next_request_served() -> None:
    chance = random.Random(6)  # noqa: S311 - the same every time
    async with line(Shelf(SHELF)) as talker:

        async def write() -> None:
            for number in range(10_000):
                talker.raw(garbled(chance, number))
                await talker.writer.drain()
            talker.raw(b"\n")
            talker.ask("last", "ping")

        answers: list[Any] = []
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not answers or answers[-1].get("id") != "last":
                message = await talker.heard()
                answers += message if isinstance(message, list) else [message]
        codes = {one.get("error", {"code": 0})["code"] for one in answers}
        assert len(answers) > 7000
        assert codes <= {0, -32700, -32600, -32601, -32602, -32022}
        await talker.served()
