"""Questions as rows: whose they are is asked of the database, and how many there are too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.storage.both import BOTH, kept

from openfang.core.keys import Answer, Question, Scope
from openfang.storage.approvals import ApprovalStore, insert
from openfang.storage.database import Database, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C15.1")


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


def put(database: Database, number: int, caller: str, state: Answer = Answer.PENDING) -> None:
    question = Question(
        id=f"ask_{number:05}",
        caller=caller,
        tool="t",
        arguments_hash="",
        run="",
        rule="r",
        reason="",
        arguments="{}",
        state=state,
        scope=Scope.ONCE,
        asked_at=0,
        expires_at=100,
    )
    database.connection.execute(*insert(question))


def test_what_others_were_asked_since_hides_nothing_of_ones_own(database: Database) -> None:
    put(database, 0, "key:a")
    put(database, 1, "key:a", Answer.SPENT)
    with database.connection:
        database.connection.execute("BEGIN")
        for number in range(2, 1_100):
            put(database, number, "key:b")
    store = ApprovalStore(database)
    assert [question.id for question in at_once(store.all("key:a"))] == ["ask_00001", "ask_00000"]
    assert [question.id for question in at_once(store.pending(0, "key:a"))] == ["ask_00000"]
    assert at_once(store.count_pending(0, "key:a")) == 1
    assert at_once(store.count_pending(0)) == 1_099
    assert at_once(store.count_pending(100)) == 0


def test_the_state_of_a_question_is_read_alone(database: Database) -> None:
    put(database, 1, "key:a", Answer.DENIED)
    store = ApprovalStore(database)
    assert at_once(store.state("ask_00001")) is Answer.DENIED
    assert at_once(store.state("ask_nothing")) is None
