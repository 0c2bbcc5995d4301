from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.both import BOTH, kept

from openfang.core.labels import Labels
from openfang.core.memory import Origin
from openfang.storage.database import Database, at_once, looked
from openfang.storage.memory import MemoryStore, Sought, forget, forget_one, remember
from openfang.storage.words import fold, indexed, snippet, text_of, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.requirement("C6.2")

MINE = "key-ada"


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    yield from kept(request)


def keep(database: Database, name: str, value: Any, space: str = MINE, **more: Any) -> None:
    text = orjson.dumps(value).decode()
    for statement in remember(space, name, text, more.pop("labels", Labels.NONE), **more):
        database.connection.execute(*statement)


def found(database: Database, query: str, **more: Any) -> list[str]:
    asked: dict[str, Any] = {"space": MINE, "limit": 50, **more}
    sought = Sought(query=query, **asked)
    return [one.key for one in at_once(MemoryStore(database).search(sought))]


def test_what_has_more_of_the_words_and_rarer_ones_comes_first(database: Database) -> None:
    for number in range(20):
        keep(database, f"note.{number}", f"the plan of day {number}")
    keep(database, "garden", "the plan of the garden")
    keep(database, "rose", "a red rose in the garden, which is long, and says much besides")
    assert found(database, "garden rose") == ["rose", "garden"]
    assert found(database, "plan of the garden", limit=2)[0] == "garden"
    assert len(found(database, "plan", limit=50)) == 21
    assert found(database, "plan", limit=3) == found(database, "plan")[:3]


def test_words_that_many_hold_do_not_hide_the_rare_one(database: Database) -> None:
    database.connection.execute("BEGIN")
    keep(database, "oldest", "a needle, as common as can be")
    for number in range(1200):
        keep(database, f"n{number}", "common as can be")
    database.connection.execute("COMMIT")
    assert found(database, "common as needle", limit=3) == ["oldest", "n1199", "n1198"]
    assert found(database, "common", limit=2) == ["n1199", "n1198"]
    assert found(database, "needle common", limit=5, granted=("n1*",))[0] == "n1199"


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("GRÜN", ["colour"]),
        ("grun", ["colour"]),
        ("gru", ["colour"]),
        ("gr", []),
        ("favourite", ["colour"]),
        ("name", ["town"]),
        ("since", ["town"]),
        ("1998", ["town"]),
        ("null true", []),
        ("ﬁne", ["mood"]),
        ("größe", ["mood"]),
        ("東京", ["town"]),
        ("\N{MATHEMATICAL BOLD CAPITAL F}ine", ["mood"]),
    ],
)
def test_text_keys_and_numbers_are_found_whatever_their_case_and_accents(
    database: Database, query: str, keys: list[str]
) -> None:
    keep(database, "colour", {"my_favourite": "Gru\u0308n"})
    keep(database, "town", {"name": ["Lisboa", "東京"], "since": 1998, "left": None, "ok": True})
    keep(database, "mood", "fine, of some GRÖSSE")
    assert found(database, query) == keys


@pytest.mark.parametrize(
    "query",
    [
        *("", "!?", '"', "' OR 1=1", "* NOT (", "AND", "NEAR(a b)", "words:x", "^x", "{a b}:c"),
        *("a\0b", "\N{GRINNING FACE}", "_", "-x", "x" * 1000, "x " * 500, "1" + " x1" * 300),
    ],
)
def test_no_query_is_read_as_anything_but_words(database: Database, query: str) -> None:
    keep(database, "and", "said or 1")
    wanted = set(words_of(query)) & {"and", "said", "or", "1"}
    assert found(database, query) == (["and"] if wanted else [])


@given(query=st.text(), value=st.text())
def test_any_text_is_found_by_its_first_word(query: str, value: str) -> None:
    words = words_of(value)
    assert indexed("k", orjson.dumps(value).decode()) == " ".join(["k", *words])
    assert all(word == fold(word) and word.isalnum() for word in (*words, *words_of(query)))


def test_a_space_knows_nothing_of_others_not_even_how_many_hold_a_word(database: Database) -> None:
    keep(database, "a", "alpha")
    keep(database, "b", "beta")
    before = found(database, "alpha beta")
    for number in range(50):
        keep(database, f"a{number}", "alpha", space="key-bob")
        keep(database, f"b{number}", "beta", space=f"{MINE}/inner")
    assert found(database, "alpha beta") == before
    assert found(database, "beta", space="key-bob") == []
    assert found(database, "beta", space="key") == []


def test_only_keys_that_are_granted_are_found_and_count(database: Database) -> None:
    for number in range(30):
        keep(database, f"closed.{number}", "secret plan")
    keep(database, "open.1", "a plan, among much else that is said of it and of other things")
    keep(database, "open.2", "plan")
    assert found(database, "plan", granted=("open.*",), limit=2) == ["open.2", "open.1"]
    assert found(database, "plan", granted=("open.[!2]",)) == ["open.1"]
    assert found(database, "plan", granted=("OPEN.*",)) == []
    assert found(database, "plan", granted=()) == []
    page = at_once(MemoryStore(database).page(MINE, ("open.?",), before=2**62, limit=9))
    assert [one.key for one in page] == ["open.2", "open.1"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_is_replaced_or_forgotten_is_found_no_more(database: Database) -> None:
    keep(database, "colour", "green")
    keep(database, "colour", "blue")
    keep(database, "car", "blue")
    keep(database, "inside", "blue", space=f"{MINE}/x")
    keep(database, "beside", "blue", space=f"{MINE}x")
    assert found(database, "green") == []
    assert found(database, "blue") == ["car", "colour"]
    for statement in forget_one(MINE, "car"):
        database.connection.execute(*statement)
    assert found(database, "blue") == ["colour"]
    for statement in forget(MINE):
        database.connection.execute(*statement)
    assert found(database, "blue") == found(database, "blue", space=f"{MINE}/x") == []
    assert found(database, "blue", space=f"{MINE}x") == ["beside"]
    database.connection.execute("INSERT INTO memory_words (memory_words) VALUES ('optimize')")
    terms = database.read_now(
        "SELECT COUNT(*) FROM memory_words WHERE memory_words MATCH ?", ("x*",)
    )
    assert terms == [(0,)]


def test_it_says_where_it_comes_from_and_what_it_may_be_trusted_for(database: Database) -> None:
    origin = Origin(stored_by="agent:a", asked_by="key:ada", trace="0" * 32, call="call_1")
    keep(database, "k", {"a": [1]}, labels=Labels.EXTERNAL_NETWORK, origin=origin)
    (one,) = at_once(MemoryStore(database).search(Sought(space=MINE, query="k", limit=5)))
    assert (one.value, one.labels, one.origin) == ({"a": [1]}, Labels.EXTERNAL_NETWORK, origin)
    assert one.stored_at > 0
    assert at_once(MemoryStore(database).get(MINE, "k")) == one


def test_a_long_one_is_shown_around_the_word(database: Database) -> None:
    keep(database, "long", {"text": "left " * 500 + "NÉEDLE" + " right" * 500})
    (one,) = at_once(MemoryStore(database).search(Sought(space=MINE, query="needle", limit=5)))
    assert one.shortened
    assert one.value.startswith("…")
    assert "NÉEDLE right" in one.value
    assert len(one.value) < 300
    whole = at_once(MemoryStore(database).get(MINE, "long"))
    assert whole is not None
    assert len(whole.value["text"]) > 5000
    assert snippet("short", frozenset()) == "short"
    assert text_of([{"a": ["b", 1.5, None, False]}, "c"]) == "a b 1.5 c"


def test_a_value_nested_deeply_is_read_all_the_same() -> None:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    assert text_of(["a", value, "b"]) == "a b"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_many_memories_are_searched_in_the_order_and_the_time_that_is_promised(
    tmp_path: Path, database: Database
) -> None:
    database.connection.execute("BEGIN")
    for number in range(20_000):
        keep(database, f"note.{number}", f"fact {number} about topic {number % 200}")
    keep(database, "topic", "a fact about seven and eleven")
    database.connection.execute("COMMIT")
    path, begun = tmp_path / "openfang.db", time.perf_counter()
    sought = Sought(space=MINE, query="fact about topic 7 eleven", limit=5)
    memories = looked(path, lambda reader: MemoryStore(reader).search(sought))
    took = time.perf_counter() - begun
    assert [one.key for one in memories][:2] == ["topic", "note.7"]
    assert all(int(one.key.split(".")[1]) % 200 == 7 for one in memories[1:])
    assert took < 2
