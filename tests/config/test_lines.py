"""The index of TOML keys: the right line for each way to write one; no text breaks it."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.config.lines import Key, toml_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.requirement("C2.6")

DOCUMENT = '''\
# comment = 1
root = 1  # trailing [comment]
"quoted.key" = "a # no comment"
dotted . key = 2

text = """
[not.a.table]
not_a_key = 1
"""""
raw = \'\'\'
[[neither]]
\'\'\'
list = [  # first
  1, 2,
  { inner = 3, deep.er = [4,
    5] },
]
when = 1979-05-27 07:32:00

[table."with quotes".below]
key = true

[[servers]]
name = "one"
[servers.transport]
type = "stdio"
[[servers.parts]]
id = 1
[[servers.parts]]
id = 2

[[servers]]
name = "two"
transport = { type = "http" }
'''

LINES: dict[Key, int] = {
    ("root",): 2,
    ("quoted.key",): 3,
    ("dotted",): 4,
    ("dotted", "key"): 4,
    ("text",): 6,
    ("raw",): 10,
    ("list",): 13,
    ("list", 0): 14,
    ("list", 1): 14,
    ("list", 2): 15,
    ("list", 2, "inner"): 15,
    ("list", 2, "deep"): 15,
    ("list", 2, "deep", "er"): 15,
    ("list", 2, "deep", "er", 0): 15,
    ("list", 2, "deep", "er", 1): 16,
    ("when",): 18,
    ("table",): 20,
    ("table", "with quotes"): 20,
    ("table", "with quotes", "below"): 20,
    ("table", "with quotes", "below", "key"): 21,
    ("servers",): 23,
    ("servers", 0): 23,
    ("servers", 0, "name"): 24,
    ("servers", 0, "transport"): 25,
    ("servers", 0, "transport", "type"): 26,
    ("servers", 0, "parts"): 27,
    ("servers", 0, "parts", 0): 27,
    ("servers", 0, "parts", 0, "id"): 28,
    ("servers", 0, "parts", 1): 29,
    ("servers", 0, "parts", 1, "id"): 30,
    ("servers", 1): 32,
    ("servers", 1, "name"): 33,
    ("servers", 1, "transport"): 34,
    ("servers", 1, "transport", "type"): 34,
}


def test_every_way_to_write_a_key_is_found_on_its_line() -> None:
    assert toml_lines(DOCUMENT) == LINES


def test_windows_line_ends_do_not_move_the_lines() -> None:
    assert toml_lines(DOCUMENT.replace("\n", "\r\n")) == LINES


def paths(value: object, path: Key = ()) -> Iterator[Key]:
    """Every key and entry of a parsed document."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str | int, object]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[object]", value)))
    for part, below in inner:
        yield (*path, part)
        yield from paths(below, (*path, part))


SIMPLE = st.sampled_from(
    [
        "1", "-0.5", "inf", "true", "1979-05-27", "1979-05-27 07:32:00", "0xff",
        '"a # b"', '"\\" ] } ="', "'C:\\x'", '"""\n[x]\ny = 1 # z\n"""', '"""q"""""',
        "'''\n]\n'''", "''''z'''''", '"\\\\"', '"""\\\\\\""""',
    ]
)  # fmt: skip
GAPS = st.sampled_from(["", " ", "\n", " # c ] } =\n", "\n\n\t"])


@st.composite
def lists(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    entries = [draw(GAPS) + draw(values) + draw(GAPS) for _ in range(draw(st.integers(0, 3)))]
    return f"[{','.join(entries)}{',' if entries and draw(st.booleans()) else ''}{draw(GAPS)}]"


@st.composite
def tables(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    # An inline table of one line only holds values of one line.
    names = [
        f"i{n}{draw(st.sampled_from(['', '.x', ' . y']))}" for n in range(draw(st.integers(0, 3)))
    ]
    return "{" + ", ".join(f"{name} = {draw(values)}" for name in names) + "}"


VALUES = st.recursive(SIMPLE, lambda inner: lists(inner) | tables(inner), max_leaves=6)


@st.composite
def documents(draw: st.DrawFn) -> str:
    numbers = iter(range(1000))
    lines: list[str] = []
    for header in draw(
        st.lists(
            st.sampled_from(["", "[{}]", "[[{}]]", "[[again]]", "[{}.sub]", "[again.{}]"]),
            max_size=6,
        )
    ):
        name = f"k{next(numbers)}"
        if header == "[again.{}]" and "[[again]]" not in lines:
            continue
        if header:
            lines.append(header.format(name))
        for _ in range(draw(st.integers(0, 3))):
            key = draw(st.sampled_from(["{}", '"{}"', "'{}'", "{}.d", " {} "])).format(
                f"k{next(numbers)}"
            )
            lines.append(f"{key} = {draw(VALUES)}{draw(st.sampled_from(['', ' # note']))}")
        lines += draw(st.lists(st.sampled_from(["", "# [c]", "\t"]), max_size=2))
    return "\n".join(lines)


@settings(max_examples=150, deadline=None)
@given(documents())
def test_the_index_has_exactly_the_keys_of_the_parsed_document(text: str) -> None:
    parsed: dict[str, Any] = tomllib.loads(text)
    index = toml_lines(text)
    assert set(index) == set(paths(parsed))
    lines = text.split("\n")
    assert all(
        key[-1] in lines[line - 1] for key, line in index.items() if isinstance(key[-1], str)
    )


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="[]{}=.,\"'#\n ab1\\", max_size=60))
def test_no_text_breaks_the_index(text: str) -> None:
    index = toml_lines(text)
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(index) == set(paths(parsed))
