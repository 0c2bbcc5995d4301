"""What servers say on their way: to the client that wants to hear it, and to the log (C3.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.sources.mcp.federation import Node, Person, entry, node, until, web
from tests.sources.mcp.peers.federated_web import FederatedWeb
from tests.sources.mcp.peers.web import serving

from openfang.protocols.mcp.levels import LEVELS, severity

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("C3.10")
ERAS = ("handshake", "modern")
MESSAGE = "notifications/message"
COMPLETE = "notifications/elicitation/complete"
NOTES = [
    (MESSAGE, {"level": "debug", "data": "a detail"}),
    (MESSAGE, {"level": "warning", "data": {"n": 1}, "logger": "peer"}),
    (MESSAGE, {"level": "loud", "data": "of no level"}),
    (MESSAGE, {"data": "of none"}),
]


async def say(it: Node, client: Person | None, *notes: Any, aside: bool = False) -> None:
    result = await it.call("say", client, notes=list(notes), aside=aside)
    assert result.text == "said"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_hears_what_is_as_severe_as_it_wants(tmp_path: Path, era: str) -> None:
    people = {level: Person(level=level) for level in ("", "debug", "warning", "emergency")}
    async with node(tmp_path, entry("peer", era)) as it:
        for person in people.values():
            await say(it, person, *NOTES)
    heard = {level: [params for _, params in person.told] for level, person in people.items()}
    assert heard == {
        "": [],
        "debug": [NOTES[0][1], NOTES[1][1]],
        "warning": [NOTES[1][1]],
        "emergency": [],
    }


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_a_message_belongs_to_the_call_on_whose_stream_it_came(
    tmp_path: Path, era: str
) -> None:
    ada, bob = Person(key="ada", level="debug"), Person(key="bob", level="debug")
    async with (
        serving(FederatedWeb(era)) as url,
        node(tmp_path, web("peer", url)) as it,
        anyio.create_task_group() as group,
    ):
        group.start_soon(it.call, "hang", bob)
        await until(lambda: it.source()._turns.clients == 1)
        await say(it, ada, *NOTES)
        group.cancel_scope.cancel()
    assert len(ada.told) == 2
    assert bob.told == []


async def test_over_a_pipe_what_is_meant_for_nobody_in_particular_goes_to_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ada, bob = Person(key="ada", level="debug"), Person(key="bob", level="debug")
    async with node(tmp_path, entry("peer", "handshake")) as it, anyio.create_task_group() as group:
        with caplog.at_level("INFO", "openfang.mcp"):
            await say(it, ada, *NOTES)
            group.start_soon(it.call, "hang", bob)
            await until(lambda: it.source()._turns.clients == 1)
            await say(it, ada, (MESSAGE, {"level": "error", "data": "for whom?"}))
        group.cancel_scope.cancel()
    assert [params["data"] for _, params in ada.told] == ["a detail", {"n": 1}]
    assert bob.told == []
    assert "peer says: for whom?" in caplog.text
    assert "peer says: a detail" in caplog.text


async def test_the_end_of_what_an_address_was_for_is_told_on_either_stream(tmp_path: Path) -> None:
    person = Person()
    async with (
        serving(FederatedWeb("handshake")) as url,
        node(tmp_path, web("peer", url)) as it,
        anyio.create_task_group() as group,
    ):
        await say(it, person, (COMPLETE, {"elicitationId": "1"}))
        group.start_soon(it.call, "hang", person)
        await until(lambda: it.source()._turns.clients == 1)
        await say(it, None, (COMPLETE, {"elicitationId": "2"}), aside=True)
        await person.until(lambda: len(person.told) == 2)
        group.cancel_scope.cancel()
    assert person.told == [(COMPLETE, {"elicitationId": number}) for number in "12"]


async def test_a_storm_of_messages_does_not_bury_a_client(tmp_path: Path) -> None:
    person = Person(level="debug")
    async with node(tmp_path, entry("peer", "handshake")) as it:
        began = anyio.current_time()
        assert (await it.call("storm", person, method=MESSAGE, times=5_000)).text == "over"
        took = anyio.current_time() - began
    assert 0 < len(person.told) <= 200 * (took + 2)


@pytest.mark.requirement("C18.3")
async def test_no_secret_is_told(tmp_path: Path) -> None:
    person, secret = Person(level="debug"), "sk-proj-" + "A1b2C3d4" * 6
    async with node(tmp_path, entry("peer", "handshake")) as it:
        await say(it, person, (MESSAGE, {"level": "info", "data": f"it is {secret}"}))
    assert len(person.told) == 1
    assert secret not in str(person.told)


async def test_an_older_server_is_told_the_least_severe_level_that_anybody_wants(
    tmp_path: Path,
) -> None:
    async with node(tmp_path, entry("peer", "handshake")) as it:
        for level in ("", "error", "warning", "error", "debug", "info"):
            await it.call("echo", Person(level=level))
        levels = [params["level"] for params in await it.params("logging/setLevel")]
        assert levels == ["error", "warning", "debug"]


async def test_an_older_server_that_says_nothing_of_messages_is_not_asked_for_any(
    tmp_path: Path,
) -> None:
    async with node(tmp_path, entry("peer", "handshake", "only=tools")) as it:
        await it.call("echo", Person(level="debug"))
        assert await it.params("logging/setLevel") == []


async def test_a_modern_request_says_itself_what_it_wants_to_hear(tmp_path: Path) -> None:
    async with node(tmp_path, entry("peer", "modern")) as it:
        for level in ("notice", ""):
            meta = (await it.call("echo", Person(level=level))).structured["meta"]
            assert meta.get("io.modelcontextprotocol/logLevel", "") == level
        assert await it.params("logging/setLevel") == []


def test_levels_are_ordered_and_a_word_that_is_none_comes_before_them() -> None:
    assert [severity(level) for level in LEVELS] == list(range(8))
    assert [severity(odd) for odd in ("loud", 7, None, ["debug"])] == [-1] * 4
