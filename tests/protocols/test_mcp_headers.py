"""Headers that mirror a request: every text survives, and what may not be mirrored is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.protocols.mcp.headers import (
    InvalidMark,
    decode_value,
    encode_value,
    find_marks,
    param_headers,
    standard_headers,
)

pytestmark = pytest.mark.requirement("C3.3")


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_and_no_header_can_be_broken_by_it(text: str) -> None:
    value = encode_value(text)
    assert re.fullmatch(r"[\x20-\x7e]*", value)
    assert value == value.strip()
    assert decode_value(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("us-west1", "us-west1"),
        ("us west 1", "us west 1"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("\tindented", "=?base64?CWluZGVudGVk?="),
    ],
)
def test_the_examples_of_the_specification(text: str, value: str) -> None:
    assert encode_value(text) == value


@pytest.mark.parametrize(
    "value", ["=?base64?!!!?=", "=?base64?/w==?=", "=?base64?a?=", "=?base64?QR==?="]
)
def test_what_claims_to_be_base64_and_is_not_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        decode_value(value)


def test_the_name_is_mirrored_where_there_is_one() -> None:
    assert standard_headers("v", "tools/call", {"name": "é"}) == {
        "MCP-Protocol-Version": "v",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "=?base64?w6k=?=",
    }
    assert standard_headers("v", "resources/read", {"uri": "a://b"})["Mcp-Name"] == "a://b"
    for params in (None, {}, {"name": 7}):
        assert "Mcp-Name" not in standard_headers("v", "tools/call", params)
    assert "Mcp-Name" not in standard_headers("v", "tools/list", {"name": "x"})


def schema(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def marked(mark: object, kind: object = "string") -> dict[str, object]:
    return {"type": kind, "x-mcp-header": mark}


def test_marked_arguments_are_mirrored() -> None:
    tool = schema(
        region=marked("Region"),
        count=marked("Count", "integer"),
        debug=marked("Debug", "boolean"),
        where=schema(city=marked("City")),
        plain={"type": "string"},
    )
    marks = find_marks(tool)
    assert marks["City"] == ("where", "city")
    arguments = {
        "region": " x",
        "count": 42.0,
        "debug": False,
        "where": {"city": "Ulm"},
        "plain": "no",
    }
    assert param_headers(marks, arguments) == {
        "Mcp-Param-Region": "=?base64?IHg=?=",
        "Mcp-Param-Count": "42",
        "Mcp-Param-Debug": "false",
        "Mcp-Param-City": "Ulm",
    }
    assert param_headers(marks, {"region": None, "where": 5, "count": [1]}) == {}
    assert param_headers(marks, {"count": 2**53, "where": {"city": {}}}) == {}


@pytest.mark.parametrize(
    "tool",
    [
        schema(a=marked("")),
        schema(a=marked(None)),
        schema(a=marked("A B")),
        schema(a=marked("A\r\nB")),
        schema(a=marked("Ä")),
        schema(a=marked("A", "number")),
        schema(a=marked("A", "object")),
        schema(a=marked("A", "array")),
        schema(a=marked("A", "null")),
        schema(a=marked("A", ["string", "null"])),
        schema(a=marked("A", None)),
        schema(a=marked("A"), b=marked("A")),
        schema(a=marked("A"), b=marked("a")),
        schema(a={"type": "array", "items": marked("A")}),
        schema(a={"oneOf": [marked("A")]}),
        {"allOf": [schema(a=marked("A"))]},
        {"if": schema(a=marked("A"))},
        {"$defs": {"a": marked("A")}},
        {"$defs": {"default": marked("A")}},
        {"patternProperties": {"const": marked("A")}},
        {"additionalProperties": marked("A")},
        marked("A"),
        schema(**{f"a{index}": marked(f"A{index}") for index in range(33)}),
    ],
)
def test_a_mark_against_the_rules_is_refused(tool: dict[str, Any]) -> None:
    with pytest.raises(InvalidMark):
        find_marks(tool)


@pytest.mark.parametrize(
    "tool",
    [
        None,
        [],
        schema(),
        schema(**{"x-mcp-header": {"type": "string"}}),
        {"$defs": {"x-mcp-header": {"type": "string"}}},
        {"type": "object", "default": marked("A"), "examples": [marked("A")]},
        schema(a={"const": marked("A"), "enum": [marked("A")]}),
    ],
)
def test_what_only_looks_like_a_mark_is_none(tool: object) -> None:
    assert find_marks(tool) == {}


def test_a_deep_schema_costs_its_length() -> None:
    deep: dict[str, Any] = {}
    for _ in range(20_000):
        deep = {"not": deep}
    assert find_marks(deep) == {}
