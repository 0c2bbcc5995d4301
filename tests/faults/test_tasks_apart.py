"""Two callers on one node: for either, what the other has does not exist, whatever is asked how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.daemon import serving
from tests.faults.dialects import (
    DIALECTS,
    RPC1,
    Dialect,
    Sending,
)
from tests.faults.tasks import (
    ENABLED,
    PUSHED,
    Peer,
    another,
    home_with_agents,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.daemon import Answered
    from tests.faults.dialects import Asked

pytestmark = [pytest.mark.requirement("C5.5"), pytest.mark.needs("bwrap")]

NONE = "task_00000000000000000000000000000000"
NO_SESSION = "session_00000000000000000000000000000000"
OPERATIONS = [
    pytest.param(dialect, one, id=f"{dialect.name} {one}")
    for dialect in DIALECTS
    for one in dialect.of_task
]
# The seed's addresses name no agent.
AT_AGENTS = [one for one in OPERATIONS if not str(one.id).startswith("seed")]
LISTING = [dialect for dialect in DIALECTS if dialect.listed]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, Peer]]:
    home = home_with_agents(tmp_path_factory.mktemp("apart") / "home", ENABLED + PUSHED)
    with serving(home) as daemon:
        yield another(daemon, "one"), another(daemon, "two")
    assert home.complaints() == []


@pytest.fixture(scope="module")
def theirs(both: tuple[Peer, Peer]) -> dict[str, Any]:
    """A task of the first, which waits for them, and of which somebody is told."""
    task = both[0].send(Sending(agent="asker"))
    assert RPC1.code(both[0].of_task("push set", task["id"], "asker")) == 0
    return task


def named(dialect: Dialect) -> str:
    return dialect.name


def not_found(dialect: Dialect) -> int:
    return -32001 if dialect.in_envelope else 404


def without(answer: Answered, word: str) -> bytes:
    return answer.body.replace(word.encode(), b"*")


@pytest.mark.parametrize(("dialect", "operation"), OPERATIONS)
def test_anothers_task_is_not_found_by_any_operation(
    both: tuple[Peer, Peer], theirs: dict[str, Any], dialect: Dialect, operation: str
) -> None:
    owner, other = both
    before = [owner.of_task(one, theirs["id"], "asker").body for one in ("get", "push list")]
    answer = other.of_task(operation, theirs["id"], "asker", dialect)
    assert dialect.code(answer) == not_found(dialect), answer
    unknown = other.of_task(operation, NONE, "asker", dialect)
    assert without(answer, theirs["id"]) == without(unknown, NONE)
    after = [owner.of_task(one, theirs["id"], "asker").body for one in ("get", "push list")]
    assert after == before


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
def test_anothers_question_cannot_be_answered(
    both: tuple[Peer, Peer], theirs: dict[str, Any], dialect: Dialect
) -> None:
    owner, other = both
    before = owner.of_task("get", theirs["id"], "asker").body
    ways = [dialect.send, *([dialect.stream] if dialect.stream else [])]
    for way in ways:
        answer = other.ask(way(Sending(agent="asker", task=theirs["id"])))
        assert dialect.code(answer) == not_found(dialect), answer
    assert owner.of_task("get", theirs["id"], "asker").body == before


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
def test_anothers_session_cannot_be_gone_on_with(
    both: tuple[Peer, Peer], theirs: dict[str, Any], dialect: Dialect
) -> None:
    _, other = both
    session = theirs["contextId"]
    answer = other.ask(dialect.send(Sending(agent="asker", context=session)))
    unknown = other.ask(dialect.send(Sending(agent="asker", context=NO_SESSION)))
    assert dialect.code(answer) != 0, answer
    assert without(answer, session) == without(unknown, NO_SESSION)


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
def test_the_same_name_of_a_context_is_another_conversation(
    both: tuple[Peer, Peer], dialect: Dialect
) -> None:
    context = f"shared {dialect.name}"
    tasks = [peer.send(Sending(context=context), dialect) for peer in both]
    sql = "SELECT DISTINCT caller, session FROM tasks WHERE context = ?"
    rows = both[0].daemon.home.rows(sql, (context,))
    assert len(tasks) == len({caller for caller, _ in rows}) == len({one for _, one in rows}) == 2


@pytest.mark.parametrize("dialect", LISTING, ids=named)
def test_a_list_shows_ones_own_and_nothing_else(
    both: tuple[Peer, Peer], theirs: dict[str, Any], dialect: Dialect
) -> None:
    own = {peer.send(Sending(agent="asker"), dialect)["id"]: peer for peer in both}
    for task, peer in own.items():
        listed = ids(peer, dialect, dialect.listed)
        assert task in listed
        assert not (own.keys() - {task}) & listed
    assert theirs["id"] not in ids(both[1], dialect, dialect.listed)
    assert ids(both[1], dialect, dialect.listed, theirs["contextId"]) == set()


def ids(peer: Peer, dialect: Dialect, listed: Any, context: str = "") -> set[str]:
    asked: Asked = listed("asker", context)
    return {task["id"] for task in dialect.task(peer.ask(asked)).get("tasks", [])}


@pytest.mark.requirement("C5.4")
@pytest.mark.parametrize(("dialect", "operation"), AT_AGENTS)
def test_a_task_is_not_found_at_another_agents_address(
    both: tuple[Peer, Peer], theirs: dict[str, Any], dialect: Dialect, operation: str
) -> None:
    answer = both[0].of_task(operation, theirs["id"], "echo", dialect)
    assert dialect.code(answer) == not_found(dialect), answer
