"""Our headers against those of the official SDK: what we send it takes, and what it sends we take.

Where the two differ, a test says so and why.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import (
    InboundModernRoute,
    classify_inbound_request,
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from openfang.protocols.mcp import messages
from openfang.protocols.mcp.headers import (
    InvalidMark,
    Marks,
    decode_value,
    encode_value,
    find_marks,
    param_headers,
    standard_headers,
)
from openfang.protocols.mcp.meta import ClientInfo, Introduction, with_meta
from openfang.protocols.mcp.versions import NEWEST

pytestmark = pytest.mark.requirement("C3.3")

Fields = dict[str, Any]
SAFE = 2**53 - 1
NAMES = st.sampled_from(["a", "b", "default", "properties", "x-mcp-header"])
EXAMPLES = settings(max_examples=150, deadline=None)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
wrapped = st.builds(
    "=?base64?{}?=".format, texts | st.binary(max_size=9).map(b64encode).map(bytes.decode)
)
ascii_values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12)
plain_values = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | texts | wrapped


def mapping(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    return st.dictionaries(NAMES, values, max_size=3)


marks = st.fixed_dictionaries(
    {"x-mcp-header": st.sampled_from(["A", "B", "a", "X-C", "d!", "", "A B", "Ä", "E\n", None, 7])},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", "number", "null", ["string"]])
    },
)
good_marks = st.fixed_dictionaries(
    {
        "x-mcp-header": st.sampled_from(["A", "B", "C", "X-C", "d!"]),
        "type": st.sampled_from(["string", "integer", "boolean"]),
    }
)
leaves = good_marks | marks | st.just({"type": "string"}) | st.booleans()


def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Put a schema where the standard has schemas, and where it has values."""
    tuples = st.lists(inner, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": mapping(inner),
            "items": inner,
            "not": inner,
            "anyOf": tuples,
            "prefixItems": tuples,
            "$defs": mapping(inner),
            "patternProperties": mapping(inner),
            "default": inner,
            "examples": tuples,
        },
    )


def narrower(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    return st.fixed_dictionaries({"properties": mapping(inner)})


schemas = st.recursive(leaves, wider, max_leaves=6)
good_schemas = narrower(st.recursive(good_marks, narrower, max_leaves=4))
arguments = mapping(st.recursive(plain_values, mapping, max_leaves=4))


def ours(schema: object) -> Marks | None:
    try:
        return find_marks(schema)
    except InvalidMark:
        return None


def read(value: str) -> str | None:
    try:
        return decode_value(value)
    except ValueError:
        return None


# Where the two agree


@EXAMPLES
@given(texts | wrapped)
def test_a_text_is_written_alike(text: str) -> None:
    assert encode_value(text) == encode_header_value(text)
    assert decode_header_value(encode_value(text)) == text


@EXAMPLES
@given(ascii_values | wrapped.filter(str.isascii).filter(str.isprintable))
def test_a_header_is_read_alike(value: str) -> None:
    assert read(value) == decode_header_value(value)


@EXAMPLES
@given(schemas | good_schemas)
def test_the_same_marks_are_found_and_the_same_refused(schema: object) -> None:
    found = ours(schema)
    assert (found is None) == (find_invalid_x_mcp_header(schema) is not None)
    if found is not None:
        assert {path: name for name, path in found.items()} == x_mcp_header_map(schema)


@EXAMPLES
@given(good_schemas, arguments)
def test_arguments_are_mirrored_alike_and_taken(schema: Fields, values: Fields) -> None:
    found = ours(schema)
    if found is not None:
        headers = param_headers(found, values)
        assert headers == mcp_param_headers(x_mcp_header_map(schema), values)
        assert validate_mcp_param_headers(schema, values, headers) is None


@EXAMPLES
@given(
    st.sampled_from(["tools/call", "prompts/get", "resources/read", "tools/list", "x/y"]),
    st.dictionaries(st.sampled_from(["name", "uri", "arguments", "_meta"]), plain_values),
)
def test_what_we_send_is_taken_for_a_modern_request(method: str, params: Fields) -> None:
    us = Introduction(version=NEWEST, client=ClientInfo(name="n", version="1"), capabilities={})
    stamped = with_meta(params, us.fields())
    body = messages.decode(messages.request(1, method, stamped))
    assert isinstance(body, dict)
    headers = {k.lower(): v for k, v in standard_headers(NEWEST, method, stamped).items()}
    named = {key: value for key, value in params.items() if key in {"name", "uri"}}
    if all(isinstance(value, str) for value in named.values()):
        route = classify_inbound_request(body, headers=headers)  # pyright: ignore[reportUnknownArgumentType] - any JSON
        assert route == InboundModernRoute(NEWEST, {"name": "n", "version": "1"}, {})


# Where they do not


def test_a_whole_number_is_written_without_its_fraction_and_taken() -> None:
    """JSON knows one kind of number: 42.0 and 42 are the same argument."""
    schema = {"properties": {"a": {"type": "integer", "x-mcp-header": "A"}}}
    assert param_headers(find_marks(schema), {"a": 42.0}) == {"Mcp-Param-A": "42"}
    assert mcp_param_headers(x_mcp_header_map(schema), {"a": 42.0}) == {"Mcp-Param-A": "42.0"}
    assert validate_mcp_param_headers(schema, {"a": 42.0}, {"Mcp-Param-A": "42"}) is None


@pytest.mark.parametrize("number", [SAFE + 1, -SAFE - 1, 3.5, 1e300])
def test_a_number_that_not_everybody_reads_alike_is_not_mirrored(number: float) -> None:
    """The specification allows whole numbers of 53 bits only; the SDK sends what it has."""
    schema = {"properties": {"a": {"type": "integer", "x-mcp-header": "A"}}}
    assert param_headers(find_marks(schema), {"a": number}) == {}
    assert mcp_param_headers(x_mcp_header_map(schema), {"a": number}) != {}


@pytest.mark.parametrize(
    "schema",
    [
        {"x-vendor": {"x-mcp-header": "A", "type": "string"}},
        {"dependencies": {"a": {"x-mcp-header": "A", "type": "string"}}},
        {"properties": [{"x-mcp-header": "A", "type": "string"}]},
    ],
)
def test_a_mark_under_a_word_that_we_do_not_know_is_refused(schema: Fields) -> None:
    """What is no schema to us may be one to the server, which then waits for a header."""
    assert ours(schema) is None
    assert find_invalid_x_mcp_header(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "x-mcp-header": "A" * 129}}},
        {"properties": {f"a{n}": {"type": "string", "x-mcp-header": f"A{n}"} for n in range(33)}},
    ],
)
def test_headers_have_a_limit(schema: Fields) -> None:
    """A server may not make us send requests that the next proxy refuses for their size."""
    assert ours(schema) is None
    assert find_invalid_x_mcp_header(schema) is None


def test_half_a_character_is_written_but_never_read() -> None:
    """No JSON that we send holds one; what cannot happen needs no second way to fail."""
    assert read(encode_value("\ud800")) is None
    with pytest.raises(UnicodeEncodeError):
        encode_header_value("\ud800")


def test_a_line_break_makes_no_plain_text_of_what_claims_to_be_base64() -> None:
    """No header holds one; what somehow does is not believed."""
    value = "=?base64?QQ==\n?="
    assert read(value) is None
    assert decode_header_value(value) == value
