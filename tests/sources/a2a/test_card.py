"""Cards of every dialect, read; and tasks put together from what is told."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfang.core.errors import SourceFailed
from openfang.core.tasks import Role, TaskArtifact, TaskMessage, TaskState
from openfang.sources.a2a.card import SEED, Interface, read_card
from openfang.sources.a2a.following import Following, PeerTask, Piece, TooMuch, Turned, answer_of
from openfang.sources.a2a.seed_words import task_of as seed_task
from openfang.sources.a2a.words import event_of

pytestmark = pytest.mark.requirement("C5.8")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def interfaces(card: dict[str, Any]) -> tuple[Interface, ...]:
    return read_card({"name": "x", **card}, "here").interfaces


def test_a_card_is_spoken_to_as_it_says() -> None:
    new = {"url": "http://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    older = {"url": "http://b", "protocolVersion": "0.3.0", "preferredTransport": "HTTP+JSON"}
    more = {"additionalInterfaces": [{"url": "http://c", "transport": "JSONRPC"}]}
    assert interfaces({"supportedInterfaces": [new], **older}) == (
        Interface(url="http://a", binding="JSONRPC", version="1.0"),
    )
    assert interfaces({**older, **more}) == (
        Interface(url="http://b", binding="HTTP+JSON", version="0.3.0"),
        Interface(url="http://c", binding="JSONRPC", version="0.3.0"),
    )
    assert interfaces({"url": "http://d", "version": "0.1.0"}) == (
        Interface(url="http://d", binding=SEED),
    )
    vague = {"supportedInterfaces": [{"url": "http://a"}, {**new, "protocolBinding": "x" * 999}]}
    assert [one.binding for one in interfaces(vague)] == ["", "x" * 200]


def test_a_card_is_known_again_by_all_but_its_signatures() -> None:
    card = {"name": "x", "url": "http://d", "skills": [{"id": "a"}]}
    digest = read_card(card, "here").digest
    assert read_card({**card, "signatures": [1]}, "here").digest == digest
    assert read_card({**card, "skills": [{"id": "b"}]}, "here").digest != digest


@given(JSON, JSON, JSON)
def test_whatever_stands_in_a_card_is_a_card_or_a_failure(one: Any, two: Any, three: Any) -> None:
    card = {
        "url": "http://d",
        "name": one,
        "skills": two,
        "capabilities": three,
        "supportedInterfaces": one,
    }
    with suppress(SourceFailed):
        read_card(card, "here")


@given(st.sampled_from(["task", "message", "statusUpdate", "artifactUpdate"]), JSON)
def test_whatever_a_peer_tells_can_be_heard(name: str, said: Any) -> None:
    event = event_of({name: said})
    assert event is not None
    Following().hear(event)


@given(JSON, JSON, JSON)
def test_whatever_an_old_peer_tells_is_a_task_or_a_failure(one: Any, two: Any, three: Any) -> None:
    with suppress(SourceFailed):
        Following().hear(seed_task({"id": "1", "status": two, "messages": three, "artifacts": one}))


SPELLED = {
    "submitted": TaskState.SUBMITTED,
    "Submitted": TaskState.SUBMITTED,
    "inputRequired": TaskState.INPUT_REQUIRED,
    "input-required": TaskState.INPUT_REQUIRED,
    "cancelled": TaskState.CANCELED,
    "canceled": TaskState.CANCELED,
}


@pytest.mark.requirement("C5.2")
@pytest.mark.parametrize("word", SPELLED)
def test_states_of_the_first_dialect_are_read_in_every_spelling(word: str) -> None:
    for status in (word, {"state": word}):
        found = seed_task({"id": "1", "session_id": "s", "status": status})
        assert (found.state, found.context) == (SPELLED[word], "s")


def said(text: str, role: Role = Role.AGENT) -> TaskMessage:
    return TaskMessage(id="m", role=role, parts=({"type": "text", "text": text},))


def piece(text: str, *, append: bool = True) -> Piece:
    artifact = TaskArtifact(id="a", name="a", parts=({"type": "text", "text": text},))
    return Piece(id="t", context="c", artifact=artifact, append=append)


def test_pieces_are_joined_and_a_new_beginning_replaces_them() -> None:
    following = Following()
    for event in (piece("a", append=False), piece("b"), piece("c")):
        following.hear(event)
    assert following.task.artifacts[0].parts == ({"type": "text", "text": "abc"},)
    following.hear(piece("d", append=False))
    following.hear(Turned(id="t", context="c", state=TaskState.COMPLETED))
    assert following.task == PeerTask(
        id="t",
        context="c",
        state=TaskState.COMPLETED,
        artifacts=(TaskArtifact(id="a", name="a", parts=({"type": "text", "text": "d"},)),),
    )


def test_of_a_task_only_so_much_is_kept() -> None:
    following = Following()
    for _ in range(20):
        following.hear(piece("x" * 500_000))
    with pytest.raises(TooMuch):
        following.hear(piece("x"))


def test_of_files_and_data_only_so_many_are_kept_and_of_words_any_number() -> None:
    def told(*parts: dict[str, Any]) -> Piece:
        return replace(piece(""), artifact=TaskArtifact(id="a", name="a", parts=parts))

    following = Following()
    following.hear(told(*[{"type": "text", "text": "x"}] * 2_000))
    following.hear(told(*[{"type": "data", "data": 1}] * 1_000))
    with pytest.raises(TooMuch):
        following.hear(told({"type": "data", "data": 1}))


def test_a_number_that_is_too_large_for_most_is_kept() -> None:
    data = {"artifactId": "a", "parts": [{"data": {"n": int(1e300)}}]}
    event = event_of({"artifactUpdate": {"taskId": "t", "artifact": data}})
    following = Following()
    assert event is not None
    following.hear(event)
    assert following.task.artifacts[0].parts[0]["data"] == {"n": int(1e300)}


def test_the_answer_is_what_was_said_last() -> None:
    spoken, asked = said("done"), said("do", Role.USER)
    assert answer_of(PeerTask(status=spoken)) is spoken
    assert answer_of(PeerTask(history=(asked, spoken))) is spoken
    assert answer_of(PeerTask(history=(spoken, asked))) is None
