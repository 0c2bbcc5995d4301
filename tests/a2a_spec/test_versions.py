from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.a2a_spec.speaking import failure, message

from openfang.core.ids import new_id

if TYPE_CHECKING:
    from tests.a2a_spec.speaking import Speaker

pytestmark = pytest.mark.requirement("C5.3")


@pytest.mark.a2a("3.6-MUST-1")
@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.0.7"])
def test_the_third_number_does_not_count(caller: Speaker, version: str) -> None:
    task = caller.of(version=version).say("say hi")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.a2a("3.6.2-MUST-2")
@pytest.mark.parametrize("version", ["0.2", "0.5", "1.1", "2.0", "one"])
def test_a_version_that_is_not_spoken_is_refused(caller: Speaker, version: str) -> None:
    refused = caller.of(version=version).refused("send", message())
    assert refused.reason == "VERSION_NOT_SUPPORTED"
    assert refused.code == {"JSONRPC": -32009, "HTTP+JSON": 400}[caller.binding]


@pytest.mark.a2a("3.6.2-MUST-1", "3.6.2-MUST-3")
@pytest.mark.parametrize("version", [None, "", "0.3", "0.3.0"])
def test_no_version_is_the_older_one(caller: Speaker, version: str | None) -> None:
    older = caller.of(version=version, more={"Content-Type": "application/json"})
    said = {
        "kind": "message",
        "messageId": new_id("msg"),
        "role": "user",
        "parts": [{"kind": "text", "text": "say hi"}],
    }
    if caller.binding == "JSONRPC":
        asked = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": said}}
        task = older.house.daemon.ask("POST", older.path, asked, older.headers).json["result"]
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    else:
        proto = {
            "messageId": said["messageId"],
            "role": "ROLE_USER",
            "content": [{"text": "say hi"}],
        }
        path = f"{older.path}/v1/message:send"
        answer = older.house.daemon.ask("POST", path, {"message": proto}, older.headers)
        assert answer.status == 200, answer.body
        assert answer.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_the_version_can_stand_in_the_address(caller: Speaker) -> None:
    verb, path, body = caller.request("get", {"id": new_id("task")})
    answer = caller.of(version=None).raw(verb, f"{path}?A2A-Version=1.0", body)
    assert failure(caller.binding, answer).reason == "TASK_NOT_FOUND"


@pytest.mark.a2a("9.2-MUST-1", "9.2-MUST-2", "11.2-MUST-1", "11.2-MUST-2")
@pytest.mark.parametrize("name", ["a2a-version", "A2A-VERSION"])
def test_headers_have_their_names_in_any_case(caller: Speaker, name: str) -> None:
    other = caller.of(version=None, more={name: "1.0"})
    assert other.say("say hi")["status"]["state"] == "TASK_STATE_COMPLETED"
    wrong = caller.of(version=None, more={name: "9.9"})
    assert wrong.refused("send", message()).reason == "VERSION_NOT_SUPPORTED"


@pytest.mark.a2a("9.2-SHOULD-1", "11.2-SHOULD-1", "4.6.3-SHOULD-2")
def test_extensions_that_nobody_knows_are_passed_over(caller: Speaker) -> None:
    wanted = "https://example.org/one/v1,https://example.org/two/v1"
    extended = caller.of(more={"A2A-Extensions": wanted})
    assert extended.say("say hi")["status"]["state"] == "TASK_STATE_COMPLETED"
