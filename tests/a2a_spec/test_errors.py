from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.a2a_spec.speaking import MEDIA, Speaker, failure, filled, message

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from tests.faults.daemon import Answered
    from tests.peers.a2a.house import House

pytestmark = pytest.mark.requirement("C5.3", "C12.2")

# What is refused, how, and as what: the reason, the code of JSON-RPC and the status of HTTP.
ERRORS: dict[str, tuple[str, dict[str, Any], tuple[str, int, int]]] = {
    "unknown": ("get", {"id": "task_none"}, ("TASK_NOT_FOUND", -32001, 404)),
    "ended": ("cancel", {"id": "{task}"}, ("TASK_NOT_CANCELABLE", -32002, 400)),
    "watched": ("subscribe", {"id": "{task}"}, ("UNSUPPORTED_OPERATION", -32004, 400)),
    "modes": (
        "send",
        message(configuration={"acceptedOutputModes": ["video/mp4"]}),
        ("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400),
    ),
}


@pytest.mark.a2a(
    "3.3.2-MUST-1",
    "3.3.2-MUST-7",
    "3.3.2-MUST-8",
    "3.3.2-MUST-9",
    "3.3.2-SHOULD-10",
    "5.4-MUST-1",
    "9.5-MUST-1",
    "9.5-SHOULD-1",
    "11.6-MUST-1",
    "11.6-MUST-2",
    "11.6-SHOULD-1",
)
@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_its_code_and_its_name(caller: Speaker, name: str) -> None:
    op, params, (reason, code, status) = ERRORS[name]
    task = caller.say("say hi")["id"]
    refused = caller.refused(op, json.loads(json.dumps(params).replace("{task}", task)))
    (info,) = [one for one in refused.details if one["@type"].endswith("google.rpc.ErrorInfo")]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert (info["reason"], info["domain"]) == (reason, "a2a-protocol.org")
    expected = {"JSONRPC": (200, code), "HTTP+JSON": (status, status)}
    assert (refused.status, refused.code) == expected[caller.binding]
    assert refused.message
    assert refused.kind == MEDIA[caller.binding]


@pytest.mark.a2a("3.3.2-SHOULD-1", "3.3.2-SHOULD-5", "3.3.2-SHOULD-6")
def test_a_wrong_parameter_is_named_and_what_would_be_right(caller: Speaker) -> None:
    refused = caller.refused("list", {"pageSize": 101})
    assert "pageSize" in refused.message
    assert "100" in refused.message


def rpc(node: House, content: bytes, **headers: str) -> Answered:
    return Speaker(node, "JSONRPC", more=headers).raw("POST", "/a2a/agents/worker", content)


@pytest.mark.a2a("9.5-ERROR-1", "9.5-ERROR-2", "9.5-ERROR-3", "9.5-ERROR-4", "9.3-MUST-1")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ListTasks","params":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ListTasks","params":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"NoSuch","params":{}}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":7}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}', -32602),
    ],
)
def test_json_rpc_has_its_own_errors(node: House, content: bytes, code: int) -> None:
    assert failure("JSONRPC", rpc(node, content)).code == code


@pytest.mark.parametrize("given", [7, "seven", None])
def test_an_answer_has_the_id_of_its_request(node: House, given: object) -> None:
    asked: dict[str, Any] = {"jsonrpc": "2.0", "id": given, "method": "ListTasks", "params": {}}
    assert rpc(node, json.dumps(asked).encode()).json.get("id") == given


BAD_MESSAGES: dict[str, dict[str, Any]] = {
    "no message": {},
    "no parts": message(parts=[]),
    "a part of no kind": message(parts=[{"metadata": {}}]),
    "a part of an unknown kind": message(parts=[{"video": "x"}]),
    "base64 that is none": message(parts=[{"raw": "§§§"}]),
    "no id": {"message": {"role": "ROLE_USER", "parts": [{"text": "hi"}]}},
    "no role": {"message": {"messageId": "m", "parts": [{"text": "hi"}]}},
    "a role that is none": {
        "message": {"messageId": "m", "role": "boss", "parts": [{"text": "x"}]}
    },
    "the agent's role": {
        "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}
    },
    "a list for a text": message(parts=[{"text": ["hi"]}]),
    "half a character": message("say \ud800"),
}


@pytest.mark.a2a("3.3.2-MUST-5", "5.7-SHOULD-1", "13.4-MUST-2", "13.4-SHOULD-5", "14.1.1-MUST-2")
@pytest.mark.parametrize("name", BAD_MESSAGES)
def test_what_is_no_message_is_refused_and_leaves_nothing(caller: Speaker, name: str) -> None:
    before = caller.ask("list")["totalSize"]
    refused = caller.refused("send", BAD_MESSAGES[name])
    assert refused.code in {-32602, -32700, 400}
    assert caller.ask("list")["totalSize"] == before


@pytest.mark.a2a("5.7-SHOULD-2")
def test_a_field_that_nobody_knows_is_passed_over(caller: Speaker) -> None:
    request = message("say hi", colour="red")
    request["size"] = {"large": True}
    assert caller.ask("send", request)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.a2a("13.4-SHOULD-4")
def test_a_message_has_a_size(caller: Speaker) -> None:
    answer = caller.answer("send", message("say " + "x" * 10_500_000))
    assert answer.status in {200, 413}
    assert "error" in answer.json or answer.status == 413
    assert caller.say("say hi")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.a2a("5.5-MUST-1", "5.5-MUST-2", "5.6.1-MUST-1", "5.6.1-MUST-3", "5.6.1-SHOULD-1")
def test_names_and_times_are_written_as_the_protocol_wants_them(caller: Speaker) -> None:
    task = caller.say("ask Which colour?")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", task["status"]["timestamp"])
    assert task["history"][0]["role"] == "ROLE_USER"
    assert not [name for name in names(task) if "_" in name]


def names(value: Any) -> set[str]:
    """All names of fields in it."""
    return set(re.findall(r'"(\w+)": ', json.dumps(value)))


@pytest.mark.a2a("5.6.1-MUST-2")
def test_times_are_read_as_they_are_written(caller: Speaker) -> None:
    context = new_id("talk")
    first = caller.say("say one", contextId=context)
    second = caller.say("say two", contextId=context)
    after = {"contextId": context, "statusTimestampAfter": second["status"]["timestamp"]}
    assert first["id"] not in [task["id"] for task in caller.ask("list", after)["tasks"]]
    wrong = caller.refused("list", {"statusTimestampAfter": "yesterday"})
    assert wrong.code in {-32602, 400}


@pytest.mark.a2a("11.1-SHOULD-1", "14.1.1-MUST-1")
def test_what_comes_back_has_the_media_type_of_its_binding(caller: Speaker) -> None:
    answer = caller.answer("send", message("say grün"))
    assert answer.headers["content-type"].partition(";")[0] == MEDIA[caller.binding]
    assert "grün" in answer.body.decode()


@pytest.mark.parametrize("kind", ["application/json", "application/a2a+json; charset=utf-8"])
def test_either_media_type_is_taken(node: House, kind: str) -> None:
    caller = Speaker(node, "HTTP+JSON", more={"Content-Type": kind})
    assert caller.say("say hi")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.a2a("11.5-MUST-1", "11.5-MUST-2", "11.5-MUST-4")
def test_parameters_stand_in_the_address(node: House) -> None:
    caller = Speaker(node, "HTTP+JSON")
    context = f"{new_id('talk')} a&b=c/ü"
    task = caller.say("say hi", contextId=context)
    query = "contextId=" + "".join(f"%{byte:02X}" for byte in context.encode())
    found = caller.raw("GET", f"{caller.path}/tasks?{query}&includeArtifacts=true", None).json
    assert [one["id"] for one in found["tasks"]] == [task["id"]]
    assert filled(found["tasks"][0]["artifacts"]) == task["artifacts"]


@pytest.mark.a2a("4-MUST-1", "5.1-MUST-1")
def test_both_bindings_say_the_same(node: House) -> None:
    rpc, rest = (Speaker(node, binding) for binding in ("JSONRPC", "HTTP+JSON"))
    task = rpc.say("make tea")["id"]
    push = {"taskId": task, "id": "one", "url": "http://127.0.0.1:9/none"}
    rest.ask("push_set", push)
    for op, params in (
        ("get", {"id": task}),
        ("list", {"pageSize": 1}),
        ("push_get", {"taskId": task, "id": "one"}),
        ("push_list", {"taskId": task}),
        ("extended", {}),
    ):
        assert rpc.ask(op, params) == rest.ask(op, params), op
    asked = rest.say("ask Which colour?")
    assert rpc.ask("get", {"id": asked["id"]}) == rest.ask("get", {"id": asked["id"]})
    assert rpc.say("blue", taskId=asked["id"])["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_path_that_is_not_there_is_not_found(node: House) -> None:
    caller = Speaker(node, "HTTP+JSON")
    assert caller.raw("GET", f"{caller.path}/nothing", None).status == 404
    assert caller.raw("PUT", f"{caller.path}/message:send", b"{}").status == 405
    assert caller.of(agent="nobody").answer("send", message()).status == 404
