"""JSON with comments: what the standard parser reads we read, and where each key stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.config.jsonc import MAX_DEPTH, JsonProblem, read_json

if TYPE_CHECKING:
    from openfang.config.lines import Key

pytestmark = pytest.mark.requirement("C2.4", "C2.6")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_what_is_written_is_read_again(value: Any, indent: int | None, escaped: bool) -> None:  # noqa: FBT001 - drawn
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert read_json(f"/* a */{text} // b")[0] == value


@settings(max_examples=200, deadline=None)
@given(st.text('{}[]",:\\/*0123456789.eE+-truefalsn \n', max_size=20))
def test_without_comments_the_standard_parser_agrees(text: str) -> None:
    if "//" in text or "/*" in text:
        return
    try:
        expected = json.loads(text, object_pairs_hook=_once)
    except ValueError:
        with pytest.raises(JsonProblem):
            read_json(text)
        return
    try:
        assert read_json(text)[0] == expected
    except JsonProblem as problem:
        assert "finite" in str(problem)  # noqa: PT017 - the standard parser reads 1e999 as infinite


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


COMMENTED = """// first
{
  "a": 1, // "not": 2
  /* over
     two lines */ "b": [
    "x // y", "z /* w */",
    {"c": null}
  ],
  "http://x": {"d":
    true}
}
"""


def test_comments_are_blanks_and_every_key_has_its_line() -> None:
    value, lines = read_json(COMMENTED)
    assert value == {
        "a": 1,
        "b": ["x // y", "z /* w */", {"c": None}],
        "http://x": {"d": True},
    }
    expected: dict[Key, int] = {
        ("a",): 3,
        ("b",): 5,
        ("b", 0): 6,
        ("b", 1): 6,
        ("b", 2): 7,
        ("b", 2, "c"): 7,
        ("http://x",): 9,
        ("http://x", "d"): 9,
    }
    assert lines == expected


MISTAKES = {
    "nothing": ("", 1, 1, "expected a value"),
    "comment only": ("// a\n", 2, 1, "expected a value"),
    "comment without an end": ("{}\n/* a", 2, 1, "expected */ at the end of this comment"),
    "comma before a brace": ('{"a": 1,\n}', 2, 1, "expected no comma before }"),
    "comma before a bracket": ('["a", // b\n]', 2, 1, "expected no comma before ]"),
    "comma at first": ("[,1]", 1, 2, "expected a value"),
    "no comma": ('{"a": 1\n "b": 2}', 2, 2, "expected , or }"),
    "no colon": ('{"a" 1}', 1, 6, "expected :"),
    "bare key": ("{a: 1}", 1, 2, "expected a string in double quotes"),
    "single quotes": ("['a']", 1, 2, "expected a value"),
    "line break in a string": ('["a\n"]', 1, 2, "expected a string in double quotes"),
    "unknown escape": (r'["\x41"]', 1, 2, "valid escapes"),
    "half of a pair": (r'["\ud800"]', 1, 2, "expected whole characters"),
    "key twice": ('{"a": 1,\n "b": {"a": 1},\n "a": 2}', 3, 2, 'got "a" twice'),
    "key twice by an escape": (r'{"a": 1, "\u0061": 2}', 1, 10, 'got "a" twice'),
    "key twice deep inside": ('{"a": [{"b": 1,\n"b": 2}]}', 2, 1, 'got "b" twice'),
    "leading zero": ("[01]", 1, 2, "expected a value"),
    "plus": ("[+1]", 1, 2, "expected a value"),
    "point without digits": ("[1.]", 1, 2, "expected a value"),
    "hexadecimal": ("[0x10]", 1, 2, "expected a value"),
    "not a number": ("[NaN]", 1, 2, "expected a value"),
    "infinite": ("[1e999]", 1, 2, "expected a number that is finite"),
    "many digits": (f"[{'9' * 5000}]", 1, 2, "expected a number of at most 400 digits"),
    "capital word": ("[True]", 1, 2, "expected a value"),
    "longer word": ("[nullable]", 1, 2, "expected a value"),
    "two values": ("{}\n{}", 2, 1, "expected the end of the file"),
    "too deep": ("[" * 5000, 1, MAX_DEPTH + 2, "levels of nesting"),
    "open at the end": ('{"a": [1', 1, 9, "expected , or ]"),
}


@pytest.mark.parametrize(("text", "line", "column", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found_where_it_is(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(JsonProblem) as raised:
        read_json(text)
    assert (raised.value.line, raised.value.column) == (line, column)
    assert message in str(raised.value)


def test_the_deepest_that_is_taken_is_one_less_than_what_is_refused() -> None:
    deepest = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    assert read_json(deepest)[0] == json.loads(deepest)
    with pytest.raises(JsonProblem):
        read_json(f"[{deepest}]")
