"""Between a client and its server: what is passed on, and what another server is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from openfang.protocols.mcp.errors import RpcError
from openfang.protocols.mcp.framing import Broken, Frame, Framing, Oversize, Unframer
from openfang.protocols.mcp.relay import Down, Relay, Up

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.requirement("C4.1")

LINE, LENGTH = Framing.LINE, Framing.LENGTH
GREETING: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}}
CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": True}}


class Between:
    """A relay, spoken to in objects."""

    def __init__(self) -> None:
        self.relay = Relay("again")

    def say(self, message: Any, framing: Framing = LINE) -> Any:
        """What the client says: what the server gets, or `None` with what the client gets."""
        indent = None if framing is LINE else 2
        frame = Frame(json.dumps(message, indent=indent).encode(), framing)
        match self.relay.said(frame):
            case Up(line):
                assert b"\n" not in line
                return json.loads(line)
            case Down(data):
                return None, heard(data)

    def ask(self, number: int | str, method: str, framing: Framing = LINE, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        assert self.say(message, framing) == message

    def tell(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        assert self.say(message) == message

    def hear(self, message: Any) -> list[tuple[Any, Framing]]:
        """What the server says: what the client gets."""
        return heard(self.relay.heard(Frame(json.dumps(message).encode(), LINE)))

    def answer(self, number: int | str, **result: Any) -> list[tuple[Any, Framing]]:
        return self.hear({"jsonrpc": "2.0", "id": number, "result": result})

    def greet(self) -> None:
        self.ask(0, "initialize", **GREETING)
        self.answer(0, capabilities=CAPABILITIES)
        self.tell("notifications/initialized")

    def again(self) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in self.relay.again()]

    def lost(self) -> list[tuple[Any, Framing]]:
        return heard(self.relay.lost())

    def news(self) -> list[Any]:
        return [message for message, _ in heard(self.relay.news())]


def heard(data: bytes) -> list[tuple[Any, Framing]]:
    unframer = Unframer()
    found = unframer.feed(data) + unframer.end()
    assert all(isinstance(one, Frame) for one in found)
    return [(json.loads(one.body), one.framing) for one in found if isinstance(one, Frame)]


@pytest.fixture
def between() -> Between:
    return Between()


@pytest.mark.requirement("C4.2")
def test_each_answer_gets_the_framing_of_its_request(between: Between) -> None:
    between.ask(1, "tools/call", LENGTH, name="a")
    between.ask(2, "tools/call", LINE, name="b")
    assert [framing for _, framing in between.answer(1) + between.answer(2)] == [LENGTH, LINE]
    between.ask("3", "ping", LENGTH)
    told: Any = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    assert between.hear(told) == [(told, LENGTH)]


@pytest.mark.requirement("C4.3")
def test_what_cannot_be_read_is_answered_here(between: Between) -> None:
    for found, number, code in [
        (Frame(b"{", LINE), None, -32700),
        (Frame(b'{"a":"\xff"}', LENGTH), None, -32700),
        (Broken("no length"), None, -32700),
        (Oversize(LENGTH, 7), 7, -32600),
        (Oversize(LINE), None, -32600),
    ]:
        passed = between.relay.said(found)
        assert isinstance(passed, Down)
        ((message, _),) = heard(passed.data)
        assert (message["id"], message["error"]["code"]) == (number, code)


def test_an_id_in_flight_is_refused_here(between: Between) -> None:
    between.ask(1, "tools/call", name="a")
    again = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    nothing, ((refusal, _),) = between.say(again)
    assert nothing is None
    assert refusal["error"]["code"] == -32600
    between.answer(1)
    assert between.say(again) == again


def test_what_may_have_been_done_is_said_to_be_and_not_done_again(between: Between) -> None:
    between.ask(1, "tools/call", LENGTH, name="a")
    between.ask("2", "no/such")
    ((first, one), (second, two)) = between.lost()
    assert ([first["id"], second["id"]], [one, two]) == ([1, "2"], [LENGTH, LINE])
    assert "tools/call" in first["error"]["message"]
    assert "may have been done" in first["error"]["message"]
    assert between.again() == []
    assert between.lost() == []


@pytest.mark.parametrize(
    "method",
    ["ping", "tools/list", "resources/read", "prompts/get", "server/discover"],
)
def test_what_only_reads_is_asked_again(between: Between, method: str) -> None:
    between.ask(1, method, LENGTH, name="a")
    assert between.lost() == []
    assert between.again() == [
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "a"}}
    ]
    (answer,) = between.answer(1, ok=True)
    assert answer == ({"jsonrpc": "2.0", "id": 1, "result": {"ok": True}}, LENGTH)
    assert between.again() == []


def test_a_cancelled_request_is_not_waited_for(between: Between) -> None:
    between.ask(0, "tools/list")
    between.ask(1, "tools/call", name="a")
    between.tell("notifications/cancelled", requestId=1)
    between.tell("notifications/cancelled")
    assert between.lost() == []
    assert [one["id"] for one in between.again()] == [0]


def test_another_server_is_told_what_the_first_knew_and_nobody_hears_its_answers(
    between: Between,
) -> None:
    between.greet()
    between.ask(1, "logging/setLevel", level="debug")
    between.ask(2, "logging/setLevel", level="error")
    for uri in ("a://1", "a://2"):
        between.ask(uri, "resources/subscribe", uri=uri)
    for number in (1, 2, "a://1", "a://2"):
        between.answer(number)
    between.ask(5, "resources/unsubscribe", uri="a://1")
    between.answer(5)
    between.ask(6, "resources/subscribe", uri="a://3")
    between.hear({"jsonrpc": "2.0", "id": 6, "error": {"code": 1, "message": "no"}})
    assert between.lost() == []
    said = between.again()
    assert [(one["method"], one.get("params")) for one in said] == [
        ("initialize", GREETING),
        ("notifications/initialized", None),
        ("logging/setLevel", {"level": "error"}),
        ("resources/subscribe", {"uri": "a://2"}),
    ]
    numbers = [one["id"] for one in said if "id" in one]
    assert len(set(numbers)) == 3
    assert all(between.answer(number) == [] for number in numbers)
    assert between.news() == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/resources/list_changed", "params": {}},
        {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "a://2"},
        },
    ]


def test_a_server_that_goes_away_twice_is_replaced_twice(between: Between) -> None:
    between.greet()
    first = between.again()
    between.lost()
    second = between.again()
    assert [one["method"] for one in first] == [one["method"] for one in second]
    assert first[0]["id"] != second[0]["id"]


def test_a_greeting_that_is_not_answered_yet_is_said_again_as_it_was(between: Between) -> None:
    between.ask(7, "tools/list")
    between.ask(0, "initialize", **GREETING)
    between.tell("notifications/initialized")
    assert between.lost() == []
    said = between.again()
    assert [one["method"] for one in said] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
    ]
    assert said[0]["id"] == 0
    assert len(between.answer(0, capabilities={})) == 1


def test_who_greets_anew_is_known_by_the_new_greeting_alone(between: Between) -> None:
    between.greet()
    between.ask(1, "logging/setLevel", level="debug")
    between.answer(1)
    between.ask(2, "initialize", protocolVersion="2024-11-05")
    between.answer(2, capabilities={})
    assert [one.get("params") for one in between.again()] == [{"protocolVersion": "2024-11-05"}]
    assert between.news() == []


def test_a_question_of_a_lost_server_is_taken_back_and_its_answer_ignored(
    between: Between,
) -> None:
    between.greet()
    asked = {"jsonrpc": "2.0", "id": "x-1", "method": "roots/list"}
    assert between.hear(asked) == [(asked, LINE)]
    ((told, _),) = between.lost()
    assert told["method"] == "notifications/cancelled"
    assert told["params"]["requestId"] == "x-1"
    answer: Any = {"jsonrpc": "2.0", "id": "x-1", "result": {"roots": []}}
    assert between.say(answer) == (None, [])


def test_a_question_of_the_server_is_answered_once(between: Between) -> None:
    answer: Any = {"jsonrpc": "2.0", "id": "x-1", "result": {"roots": []}}
    assert between.say(answer) == (None, [])
    between.hear({"jsonrpc": "2.0", "id": "x-1", "method": "roots/list"})
    assert between.say(answer) == answer
    assert between.say(answer) == (None, [])
    between.hear({"jsonrpc": "2.0", "id": "x-2", "method": "roots/list"})
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": "x-2"}}
    between.hear({"jsonrpc": "2.0", **cancelled})
    assert between.lost() == []


def test_an_answer_that_is_too_long_is_an_error_for_the_server_that_asked(
    between: Between,
) -> None:
    between.hear({"jsonrpc": "2.0", "id": "x-1", "method": "roots/list"})
    passed = between.relay.said(Oversize(LINE, "x-1"))
    assert isinstance(passed, Up)
    assert json.loads(passed.line)["error"]["code"] == -32600


def test_an_answer_of_the_server_that_is_too_long_is_an_error_for_the_client(
    between: Between,
) -> None:
    between.ask(1, "tools/call", LENGTH, name="a")
    ((message, framing),) = heard(between.relay.heard(Oversize(LINE, 1)))
    assert (message["id"], message["error"]["code"], framing) == (1, -32603, LENGTH)
    assert between.lost() == []


def test_what_a_server_says_besides_the_protocol_is_kept_from_the_client(
    between: Between,
) -> None:
    assert between.hear({"openfang": {"anything": True}}) == []


def test_batches_are_passed_on_whole_and_never_again(between: Between) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call"},
        {"jsonrpc": "2.0", "method": "notifications/x"},
    ]
    assert between.say(batch, LENGTH) == batch
    answers: list[Any] = [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert between.hear(answers) == [(answers, LENGTH)]
    ((told, _),) = between.lost()
    assert told["id"] == 2
    assert between.again() == []


def test_the_ids_of_a_batch_that_was_refused_are_free_again(between: Between) -> None:
    between.ask(1, "tools/call")
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call"},
        {"jsonrpc": "2.0", "id": "three", "method": "ping"},
    ]
    between.say(batch)
    odd = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "odd"}}
    between.hear(odd)
    in_flight = between.say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert in_flight[0] is None
    error: Any = {"code": -32600, "message": "no", "data": {"requests": [1, 2, "three", 1.5, None]}}
    refusal: Any = {"jsonrpc": "2.0", "id": None, "error": error}
    assert between.hear(refusal) == [(refusal, LINE)]
    between.ask(2, "tools/list")
    between.ask("three", "tools/list")
    # The first was asked before the batch, and is still being served.
    assert [told["id"] for told, _ in between.lost()] == [1]


def test_what_the_end_of_the_input_cut_short_is_not_said_of_the_server(between: Between) -> None:
    between.ask(1, "tools/call", LENGTH)
    between.ask(2, "tools/list")
    between.hear({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
    first, second, question = heard(between.relay.ended())
    assert (first[0]["id"], first[1], second[0]["id"]) == (1, LENGTH, 2)
    for answer, _ in (first, second):
        assert answer["error"]["message"].startswith("The input ended")
        assert "went away" not in answer["error"]["message"]
    assert question[0]["params"]["requestId"] == "q"
    assert heard(between.relay.ended()) == between.lost() == []


def test_a_subscription_goes_on_and_is_told_what_it_may_have_missed(between: Between) -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": False}
    between.ask("sub", "subscriptions/listen", notifications=wanted)
    assert between.lost() == []
    assert [one["id"] for one in between.again()] == ["sub"]
    (told,) = between.news()
    assert told["method"] == "notifications/tools/list_changed"
    assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}


def test_without_any_server_everything_that_waits_is_answered(between: Between) -> None:
    between.ask(1, "tools/list", LENGTH)
    error = RpcError(-32603, "nobody is there")
    ((first, framing),) = heard(between.relay.given_up(error))
    assert (first["id"], framing) == (1, LENGTH)
    ask = Frame(b'{"jsonrpc":"2.0","id":2,"method":"ping"}', LINE)
    ((second, _),) = heard(between.relay.refused(ask, error))
    assert (second["id"], second["error"]["message"]) == (2, "nobody is there")
    note = Frame(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', LINE)
    assert between.relay.refused(note, error) == b""
    assert between.again() == [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
