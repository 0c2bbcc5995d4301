"""JSON texts of other programs: one member comes or goes, and nothing else changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.config.test_jsonc import TEXT, VALUES

from openfang.config.jsonc import json_spans
from openfang.config.splice import with_member, without_member
from openfang.core.errors import ConfigError

pytestmark = pytest.mark.requirement("C4.9")

PATH = ("mcpServers", "openfang")
ENTRY = {"command": "/bin/openfang", "args": ["mcp"]}
INLINE = '{"command": "/bin/openfang", "args": ["mcp"]}'
LAYOUTS: list[dict[str, Any]] = [
    {"indent": None},
    {"indent": None, "separators": (",", ":")},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            '{\n  // mine\n  "mcpServers": {\n    "a": {} // keep\n    /* and this */\n'
            "  }, // end\n}",
            '{\n  // mine\n  "mcpServers": {\n    "a": {}, // keep\n    /* and this */\n'
            '    "openfang": {\n      "command": "/bin/openfang",\n      "args": ["mcp"]\n    }\n'
            "  }, // end\n}",
            id="comments",
        ),
        pytest.param(
            '{"mcpServers": {"a": {}}}',
            f'{{"mcpServers": {{"a": {{}}, "openfang": {INLINE}}}}}',
            id="one line",
        ),
        pytest.param(
            '{"mcpServers":{"a":{}}}',
            '{"mcpServers":{"a":{},"openfang":{"command":"/bin/openfang","args":["mcp"]}}}',
            id="no blanks",
        ),
        pytest.param(
            '{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t},\r\n}\r\n',
            '{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t\t"openfang": {\r\n'
            '\t\t\t"command": "/bin/openfang",\r\n\t\t\t"args": ["mcp"]\r\n\t\t},\r\n\t},\r\n}\r\n',
            id="tabs, trailing commas, line breaks of Windows",
        ),
        pytest.param(
            '{\n    "x": "half \\ud83d of a pair",\n    "mcpServers": {}\n}\n',
            '{\n    "x": "half \\ud83d of a pair",\n    "mcpServers": {\n        "openfang": {\n'
            '            "command": "/bin/openfang",\n            "args": ["mcp"]\n        }\n'
            "    }\n}\n",
            id="an empty table",
        ),
        pytest.param(
            '{ "mcpServers":\n  { "a": 1, "b": 2\n  }}',
            '{ "mcpServers":\n  { "a": 1, "b": 2,\n    "openfang": {\n'
            '      "command": "/bin/openfang",\n      "args": ["mcp"]\n    }\n  }}',
            id="members that begin no line",
        ),
        pytest.param(
            '{\n  "mcpServers": { // none yet\n  }\n}',
            '{\n  "mcpServers": { // none yet\n    "openfang": {\n'
            '      "command": "/bin/openfang",\n      "args": ["mcp"]\n    }\n  }\n}',
            id="a comment alone",
        ),
    ],
)
def test_a_member_is_added_in_the_manner_of_its_neighbours(before: str, after: str) -> None:
    added = with_member(before, PATH, ENTRY)
    assert added == after
    assert without_member(added, PATH) == before


@pytest.mark.parametrize("before", ["", " \n", "{}", '{"other": 1}', '{\n  "other": 1\n}\n'])
def test_a_table_that_is_missing_comes_too(before: str) -> None:
    added = with_member(before, PATH, ENTRY)
    old: dict[str, Any] = json.loads(before) if before.strip() else {}
    assert json.loads(added) == {**old, "mcpServers": {"openfang": ENTRY}}
    assert json.loads(without_member(added, PATH))["mcpServers"] == {}


def test_a_member_is_replaced_where_it_stands() -> None:
    text = '{"mcpServers": {\n  "openfang": { "old": 1 }, // ours\n  "b": {}\n}}'
    assert with_member(text, PATH, ENTRY) == text.replace('{ "old": 1 }', INLINE)
    laid_out = '{\n "mcpServers": {\n  "openfang": {\n   "old": 1\n  }\n }\n}'
    expected = {"mcpServers": {"openfang": ENTRY}}
    assert with_member(laid_out, PATH, ENTRY) == json.dumps(expected, indent=1).replace(
        '[\n    "mcp"\n   ]', '["mcp"]'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"t": {"x": 1, "b": 2}}', '{"t": {"b": 2}}'),
        ('{"t": {"a": 0, "x": 1, "b": 2}}', '{"t": {"a": 0, "b": 2}}'),
        ('{"t": {"a": 0, /* why */ "x": 1 /* c */, }}', '{"t": {"a": 0, /* why */ /* c */ }}'),
        ('{"t": {\n  "x": 1\n}}', '{"t": {}}'),
        ('{"t": {\n  "x": 1 // c\n}}', '{"t": {// c\n}}'),
    ],
)
def test_a_member_goes_from_wherever_it_stands(before: str, after: str) -> None:
    assert without_member(before, ("t", "x")) == after


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "// only a comment\n",
        "[]",
        '{"mcpServers": []}',
        '{"mcpServers": null}',
        '{"mcpServers": {}, "mcpServers": {}}',
    ],
)
def test_what_is_no_table_of_servers_is_left_alone(text: str) -> None:
    with pytest.raises(ConfigError):
        with_member(text, PATH, ENTRY)


def test_what_would_swallow_a_brace_is_left_to_an_editor() -> None:
    with pytest.raises(ConfigError, match="by hand"):
        without_member('{"t": { // {\n"x": 1}}', ("t", "x"))


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(TEXT, VALUES, max_size=3),
    st.dictionaries(TEXT.filter(lambda key: key != "openfang"), VALUES, min_size=1, max_size=3),
    st.sampled_from(LAYOUTS),
    VALUES,
)
def test_whatever_the_layout_what_comes_can_go_again_to_the_byte(
    rest: dict[str, Any], table: dict[str, Any], layout: dict[str, Any], value: Any
) -> None:
    data = {**rest, "mcpServers": table}
    text = json.dumps(data, **layout)
    added = with_member(text, PATH, value)
    assert json_spans(added)[0] == {**data, "mcpServers": {**table, "openfang": value}}
    assert without_member(added, PATH) == text
