"""The rules of the planner, one by one: what it needs, what it takes, and when it gives up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from openfang.agents.planner.offer import Offer
from openfang.agents.planner.plan import Abstained, Planned, Planner, Why
from openfang.agents.planner.reading import read
from openfang.agents.planner.sayings import Saying, saying_of
from openfang.agents.planner.tokens import Kind, tokens_of
from openfang.agents.planner.words import Action, stem

pytestmark = pytest.mark.requirement("C6.5")


def _schema(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


_PATH = _schema(path={"type": "string"})
_READ = Offer("file_read", "Read a file.", _PATH)
_LIST = Offer("agent_list", "List the agents that you may send messages to.", _schema())
_DELETE = Offer("delete_file", "Delete a file.", _PATH)
_WEATHER = Offer("get_weather", "Get the weather of a city.", _schema(city={"type": "string"}))


def _call(request: str, *offers: Offer) -> tuple[str, dict[str, Any]] | Abstained:
    match Planner(offers).plan(request):
        case Planned(offer, arguments):
            return offer.name, dict(arguments)
        case abstained:
            return abstained


def _why(request: str, *offers: Offer) -> Why | None:
    found = _call(request, *offers)
    return found.why if isinstance(found, Abstained) else None


@pytest.mark.parametrize(
    "unit", ["a", "a.", "a/", "a@a.", "1,000", "select ", "with ", "'a ", "é "]
)
def test_a_request_is_taken_apart_in_time_that_grows_with_its_length(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    before = time.process_time()

    tokens_of(text)

    assert time.process_time() - before < 2


def test_what_is_too_long_for_a_plain_request_is_not_looked_at() -> None:
    assert _why("read " + "a" * 60_000, _READ) is Why.TOO_LONG
    assert _why("read the " * 100, _READ) is Why.TOO_LONG
    assert _call(f"read {'a' * 200}.txt", _READ) == ("file_read", {"path": "a" * 200 + ".txt"})


def test_a_path_of_more_than_three_hundred_characters_is_none() -> None:
    assert _why(f"read {'a' * 300}.txt", _READ) is Why.LEFT_OVER


def test_what_was_not_used_is_named() -> None:
    found = _call("read a.txt and then b.txt tomorrow", _READ)

    assert isinstance(found, Abstained)
    assert (found.near, found.left) == (_READ, ("then", "b.txt", "tomorrow"))


def test_what_no_tool_does_is_named() -> None:
    found = _call("create a file todo.txt", _READ)

    assert isinstance(found, Abstained)
    assert (found.why, found.near, found.left) == (Why.NOTHING_FITS, None, ("create",))


def test_a_tool_for_other_things_is_not_taken_for_its_verb() -> None:
    assert _why("list files", _LIST) is Why.LEFT_OVER
    assert _why("ls", _LIST) is Why.NOTHING_FITS
    assert _call("list the agents", _LIST) == ("agent_list", {})


@pytest.mark.parametrize("more", [(), (_READ, _LIST), tuple([_READ] * 20)])
def test_how_many_tools_there_are_does_not_matter(more: tuple[Offer, ...]) -> None:
    expected = ("get_weather", {"city": "Paris"})

    assert _call("what's the weather in Paris?", _WEATHER, *more) == expected
    assert _call("get the weather forecast of Paris", _WEATHER, *more) == expected


def test_of_two_tools_that_destroy_none_is_chosen() -> None:
    twin = Offer("fs_delete_file", "Delete a file.", _PATH)

    assert _call("delete a.txt", _DELETE) == ("delete_file", {"path": "a.txt"})
    assert _why("delete a.txt", _DELETE, twin) is Why.UNSURE


def test_a_tool_that_is_marked_destructive_needs_a_word_for_it_whatever_its_name() -> None:
    tidy = Offer("tidy_path", "Read and tidy a path.", _PATH, destructive=True)

    assert isinstance(_call("read notes/a.txt", tidy), Abstained)
    assert isinstance(_call("tidy the path notes/a.txt", tidy), Abstained)


@pytest.mark.parametrize(
    ("request_", "schema"),
    [
        ("delete the user tomorrow", {"type": "string"}),
        ("delete the user tomorrow", {"type": "string", "pattern": "^[a-z]+$"}),
        ("DELETE THE USER NOW", {"type": "string"}),
        ("DELETE THE USER NOW", {"type": "string", "pattern": "^[A-Z]+$"}),
        ("delete the user all", {"type": "string", "enum": ["all", "one"]}),
        ("delete 5", {"type": "integer"}),
        ("delete 'bob'", {"type": "string"}),
    ],
)
def test_what_is_destroyed_is_named_and_no_plain_word(
    request_: str, schema: dict[str, Any]
) -> None:
    assert isinstance(
        _call(request_, Offer("delete_user", "Delete.", _schema(user=schema))), Abstained
    )


def test_what_is_destroyed_may_be_named_by_what_it_is() -> None:
    numbered = Offer("delete_user", "Delete.", _schema(user={"type": "integer"}))
    named = Offer("delete_user", "Delete.", _schema(user={"type": "string"}))

    assert _call("delete user 5", numbered) == ("delete_user", {"user": 5})
    assert _call("please delete the user 'bob'", named) == ("delete_user", {"user": "bob"})


def test_a_number_that_is_not_needed_has_its_name_or_its_unit_beside_it() -> None:
    fields: dict[str, Any] = {
        "command": {"type": "string"},
        "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 3600},
    }
    run = Offer("shell_exec", "Run a program.", {"properties": fields, "required": ["command"]})

    assert _call("run sleep 5", run) == ("shell_exec", {"command": "sleep 5"})
    assert _why("run `make` 5", run) is Why.LEFT_OVER
    assert _call("run `make` with a timeout of 5 seconds", run) == (
        "shell_exec",
        {"command": "make", "timeout_seconds": 5},
    )
    assert _why("run `make` with a timeout of 5000 seconds", run) is Why.LEFT_OVER


@pytest.mark.parametrize(
    "said", ["run", "run it", "run a marathon", "run 'x", "I run ls", "ls -la"]
)
def test_only_a_command_that_is_told_to_be_run_is_run(said: str) -> None:
    run = Offer("shell_exec", "Run a program.", _schema(command={"type": "string"}))

    assert isinstance(_call(said, run), Abstained)


def test_a_schema_with_several_types_is_read_by_the_first_that_holds_anything() -> None:
    either = Offer("show_page", "Show a page.", _schema(page={"type": ["null", "integer"]}))
    odd = Offer("show_page", "Show a page.", _schema(page={"type": {}, "format": 3, "enum": 4}))

    assert _call("show page 7", either) == ("show_page", {"page": 7})
    assert isinstance(_call("show page 7", odd), Abstained)


def test_without_tools_it_abstains() -> None:
    assert _why("read notes/a.txt") is Why.NOTHING_FITS


@pytest.mark.parametrize(
    "request_", ["", " ", "?", '"', "`", "...", "''", "please", "hi,", "can you"]
)
def test_next_to_nothing_is_no_request(request_: str) -> None:
    assert isinstance(_call(request_, _READ, _DELETE, _LIST, _WEATHER), Abstained)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("https://a.example/x?y=1.", {Kind.URL}),
        ("ann@example.com", {Kind.EMAIL}),
        ("Europe/Berlin", {Kind.ZONE, Kind.PATH}),
        ("1,000.5", {Kind.NUMBER}),
        ("a.txt", {Kind.PATH}),
        ("'my notes.txt'", {Kind.PATH}),
        ("..", {Kind.PATH}),
        ("1/2", set[Kind]()),
        ("*.txt", set[Kind]()),
        ("2.0", {Kind.NUMBER}),
        ("SELECT a FROM b", {Kind.SQL}),
    ],
)
def test_a_piece_has_the_types_that_it_looks_like(text: str, kinds: set[Kind]) -> None:
    assert tokens_of(text)[0].kinds == kinds


def test_the_pieces_stand_where_they_say() -> None:
    text = "Write \"a b\" to 'c d.txt' (now), `x`!"

    tokens = tokens_of(text)

    assert [text[one.start : one.end].strip("\"'`") for one in tokens] == [
        one.text for one in tokens
    ]
    assert "".join(text[one.start : one.end] for one in tokens) == text.replace(" ", "").replace(
        "ab", "a b"
    ).replace("cd", "c d")


@pytest.mark.parametrize(
    ("request_", "saying"),
    [
        ("remember: my pin is 0042", Saying(Action.STORE, "pin", "0042")),
        ("Remember that The Office is closed", Saying(Action.STORE, "office", "closed")),
        ("My name is Ada, please remember it.", Saying(Action.STORE, "name", "Ada")),
        ("store 'a b' under the key badge", Saying(Action.STORE, "badge", "a b")),
        ("what is my PIN?", Saying(Action.RECALL, "pin")),
        ("what is the wifi password?", Saying(Action.RECALL, "wifi password", loose=True)),
        ("where is Ada?", Saying(Action.RECALL, "ada", loose=True)),
        ("remember my pin?", Saying(Action.RECALL, "pin")),
        ("what do I know about Ada?", Saying(Action.RECALL, "ada", by_words=True)),
        ("search my memory for the red car", Saying(Action.RECALL, "red car", by_words=True)),
        ("remember my pin", None),
        ("remember to buy milk", None),
        ("remember that I live in Berlin", None),
        ("what is the capital of France?", None),
        ("what is love?", None),
        ("do you remember me?", None),
    ],
)
def test_what_is_remembered_has_one_name_however_it_is_said(
    request_: str, saying: Saying | None
) -> None:
    assert saying_of(read(request_)) == saying


def test_a_question_that_a_tool_could_answer_is_not_looked_up() -> None:
    recall = Offer("memory_recall", "Recall.", _schema(key={"type": "string"}))

    assert _call("what is the weather?", recall) == ("memory_recall", {"key": "weather"})
    assert _why("what is the weather?", recall, _WEATHER) is Why.MISSING


def test_what_need_not_be_a_name_is_looked_for_by_its_words_where_a_tool_can() -> None:
    text = {"type": "string"}
    plain = Offer("memory_recall", "Recall.", _schema(key=text))
    either = _schema(key=text, query=text) | {"required": (), "minProperties": 1}
    able = Offer("memory_recall", "Recall.", either)

    assert _call("what do I know about Ada?", plain) == ("memory_recall", {"key": "ada"})
    assert _call("what do I know about Ada?", able) == ("memory_recall", {"query": "ada"})
    assert _call("what is my pin?", able) == ("memory_recall", {"key": "pin"})
    assert _why("recall", able) is Why.MISSING


@pytest.mark.parametrize(
    ("one", "other"),
    [("files", "file"), ("created", "create"), ("cities", "city"), ("boxes", "box")],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)
    assert stem("not") != stem("note")
