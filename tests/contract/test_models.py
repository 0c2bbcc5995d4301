"""Real models behind a daemon: what they want is done, on record, and goes on after `kill -9`."""

from __future__ import annotations

import http.client
import json
import signal
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from tests.agents.models.minds import KEY, REACH, settings
from tests.agents.models.scripted import Fails, Garbage, Hangs, Says, Want, scripted
from tests.contract.house import house, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.house import House

pytestmark = pytest.mark.timeout(240)
WRITE = Want(tool="file_write", arguments={"path": "figs.txt", "content": "ripe"})
READ = Want(tool="file_read", arguments={"path": "figs.txt"})
FILE = "agents/thinker/agent.toml"


def manifest(provider: str = "openai", more: str = "") -> dict[str, str]:
    model = f'[model]\nprovider = "{provider}"\nmodel = "gpt-4o-mini"\n{more}\n'
    return {FILE: f'name = "thinker"\n{model}{REACH}', "key.txt": KEY}


def keyed(url: str, provider: str = "openai") -> str:
    return settings(url, provider=provider).replace("${THE_KEY}", KEY)


def tell(node: House, message: str) -> dict[str, Any]:
    asked = {"message": message, "session": "talk"}
    return node.ask("POST", "/api/agents/thinker/message", asked).json


@pytest.mark.requirement("C6.4", "C6.5")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_of_a_provider_does_its_work_by_the_one_path(tmp_path: Path, provider: str) -> None:
    script = (Says("", [WRITE]), Says("", [READ]), Says("They are ripe."))
    with scripted(*script) as server:
        config = keyed(getattr(server, provider), provider)
        with house(tmp_path, config, files=manifest(provider)) as node:
            answer = tell(node, "write, then read")
            called = node.records(event="tool_invocation_start", caller="agent:thinker")
            logged = json.dumps(node.log())
            everything = json.dumps(node.records())

    assert (answer["response"], answer["ending"]) == ("They are ripe.", "answered")
    assert answer["usage"]["requests"] == 3
    assert [one["tool"] for one in called] == ["builtin:file_write", "builtin:file_read"]
    assert (tmp_path / "home/workspaces/agent-thinker/figs.txt").read_text() == "ripe"
    assert KEY not in logged + everything


@pytest.mark.requirement("C6.4")
def test_words_of_a_model_come_as_events(tmp_path: Path) -> None:
    with (
        scripted(Says(["One, ", "two."])) as server,
        house(tmp_path, keyed(server.openai), files=manifest()) as node,
    ):
        asked = {"message": "count"}
        stream = node.ask("POST", "/api/agents/thinker/stream", asked).body.decode()

    kinds = [line for line in stream.splitlines() if line.startswith("event: ")]
    assert kinds[:2] == ["event: words"] * 2
    assert "event: ended" in kinds


@pytest.mark.requirement("C6.5")
def test_a_model_that_cannot_answer_says_why_and_others_do_not_notice(tmp_path: Path) -> None:
    with (
        scripted(Fails(401, "no", code="invalid_api_key")) as server,
        house(tmp_path, keyed(server.openai), files=manifest()) as node,
    ):
        failed = tell(node, "hello")
        asked = {"message": "what time is it?"}
        other = node.ask("POST", "/api/agents/assistant/message", asked).json

    assert failed["ending"] == "failed"
    assert failed["response"].startswith("I stopped: openai refused the key.")
    assert other["ending"] == "answered"


@pytest.mark.requirement("C6.4", "C6.5")
def test_a_run_killed_between_two_steps_goes_on_without_asking_again_for_what_it_had(
    tmp_path: Path,
) -> None:
    never = Event()
    script = (Says("I write. ", [WRITE]), Hangs(never), Says("It is written."))
    with scripted(*script) as server:
        with house(tmp_path, keyed(server.openai), files=manifest()) as node:

            def asked() -> None:
                with suppress(OSError, http.client.HTTPException):
                    tell(node, "write it down")

            asking = Thread(target=asked)
            asking.start()
            until(lambda: len(server.asked) == 2)
            node.daemon.tell(signal.SIGKILL)
            node.daemon.ended()
            asking.join()
            never.set()
        with house(tmp_path, keyed(server.openai), again=True) as node:
            until(lambda: len(server.asked) == 3 and _last(node) == "It is written.")
            written = node.records(event="tool_invocation_start", tool="builtin:file_write")

    first, second, third = server.asked
    assert [one["role"] for one in first.messages] == ["user"]
    assert second.messages == third.messages
    assert [one["role"] for one in third.messages] == ["user", "assistant", "tool"]
    assert len(written) == 1


@pytest.mark.requirement("C6.4", "C12.4")
def test_a_run_that_was_killed_does_not_go_on_without_what_its_client_had_said(
    tmp_path: Path,
) -> None:
    never = Event()
    own = {"name": "file_write", "parameters": {"type": "object"}}
    body = {
        "model": "thinker",
        "messages": [
            {"role": "system", "content": "Write nothing down."},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Hello!"},
            {"role": "user", "content": "go on"},
        ],
        "tools": [{"type": "function", "function": own}],
    }
    with scripted(Hangs(never), Says("", [WRITE]), Says("Written.")) as server:
        with house(tmp_path, keyed(server.openai), files=manifest()) as node:

            def asked() -> None:
                with suppress(OSError, http.client.HTTPException):
                    node.ask("POST", "/v1/chat/completions", body)

            asking = Thread(target=asked)
            asking.start()
            until(lambda: len(server.asked) == 1)
            node.daemon.tell(signal.SIGKILL)
            node.daemon.ended()
            asking.join()
            never.set()
        with house(tmp_path, keyed(server.openai), again=True) as node:
            until(lambda: "nobody could go on" in _last(node))
            written = node.records(event="tool_invocation_start", tool="builtin:file_write")

    assert len(server.asked) == 1
    assert not written


@pytest.mark.requirement("C6.5")
def test_what_a_provider_says_in_the_wrong_place_is_in_no_log(tmp_path: Path) -> None:
    choice = {"index": 0, "delta": {"content": "Hm."}, "finish_reason": "stop"}
    usage = {"prompt_tokens": KEY, "completion_tokens": [KEY], "total_tokens": None}
    chunk = {"id": "1", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    said = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(chunk).encode()
    with (
        scripted(Garbage(said, kind="text/event-stream")) as server,
        house(tmp_path, keyed(server.openai), files=manifest()) as node,
    ):
        answer = tell(node, "hello")
        logged = node.daemon.home.log.read_text()

    assert answer["response"] == "Hm."
    assert KEY not in logged


def _last(node: House) -> str:
    rows = node.daemon.home.rows("SELECT body FROM turns ORDER BY session, seq")
    return json.loads(rows[-1][0])["text"]
