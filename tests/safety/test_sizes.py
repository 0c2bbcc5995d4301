"""Arguments: how large, how deep, and what is JSON at all."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from types import MappingProxyType
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.core.errors import InvalidArguments
from openfang.safety.sizes import (
    MAX_ARGUMENTS,
    MAX_DEPTH,
    check_arguments,
    has_more_tokens,
    is_within,
    measure,
)

pytestmark = pytest.mark.requirement("C7.5")


def refused(arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        check_arguments(arguments)
    return caught.value.rule


def nested(depth: int, leaf: object = 1) -> dict[str, Any]:
    """Arguments whose innermost container is at `depth`."""
    inner: object = [leaf]
    for _ in range(depth - 2):
        inner = [inner]
    return {"a": inner}


def test_arguments_of_exactly_one_mebibyte_are_taken_and_a_byte_more_is_not() -> None:
    room = MAX_ARGUMENTS - len(b'{"a":""}')
    assert len(check_arguments({"a": "x" * room})) == MAX_ARGUMENTS
    assert refused({"a": "x" * (room + 1)}) == "arguments_too_large"


def test_size_counts_bytes_and_not_characters() -> None:
    assert refused({"a": "ä" * (MAX_ARGUMENTS // 2)}) == "arguments_too_large"


@pytest.mark.parametrize("depth", [2, 3, 63, 64])
def test_sixty_four_levels_are_taken(depth: int) -> None:
    assert measure(nested(depth, {}))[0] == depth + 1
    check_arguments(nested(depth))


@pytest.mark.parametrize("depth", [65, 66, 200, 300, 900])
def test_one_level_more_is_refused(depth: int) -> None:
    assert refused(nested(depth)) == "arguments_too_deep"


def test_brackets_in_text_are_not_levels() -> None:
    check_arguments({"a": "[{" * 1_000})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("depth", [2, 30, 64])
def test_numbers_that_json_cannot_carry_are_refused(number: float, depth: int) -> None:
    assert refused(nested(depth, number)) == "arguments_not_finite"
    assert refused({"a": number}) == "arguments_not_finite"


def test_null_is_no_number() -> None:
    assert check_arguments({"a": None, "b": [1.5]}) == b'{"a":null,"b":[1.5]}'


@dataclasses.dataclass
class Thing:
    secret: str = "hidden"


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        b"bytes",
        2**70,
        "\ud800",
        Thing(),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        {1: 2},
    ],
)
def test_what_is_not_json_is_refused(value: object) -> None:
    assert refused({"a": value}) == "arguments_not_json"


def test_any_mapping_will_do() -> None:
    frozen = MappingProxyType({"b": 1, "a": 2})
    assert check_arguments(frozen) == b'{"a":2,"b":1}'
    with pytest.raises(InvalidArguments):
        check_arguments(MappingProxyType({"a": math.nan}))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc{[", max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)
OBJECTS = st.dictionaries(st.text("xyz", max_size=3), JSON, max_size=4)


@settings(max_examples=100, deadline=None)
@given(OBJECTS)
def test_the_canonical_form_says_the_same_whatever_the_order(arguments: dict[str, Any]) -> None:
    canonical = check_arguments(arguments)
    assert orjson.loads(canonical) == arguments
    backwards = dict(reversed(arguments.items()))
    assert check_arguments(backwards) == canonical


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_measuring_agrees_with_counting_one_by_one(value: object) -> None:
    def count(node: object) -> tuple[int, int]:
        match node:
            case dict():
                below = [count(child) for child in node.values()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            case list():
                below = [count(child) for child in node]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            case _:
                below = list[tuple[int, int]]()
        return 1 + max((d for d, _ in below), default=0), 1 + sum(n for _, n in below)

    assert measure(value) == count(value)


TOKENS = {
    b'{"a": 1, "b": [true, "x,{["]}  ': 7,
    b'[[], {}, ""]                   ': 6,
    b'"one \\" text, with {, and [" ': 1,
    b': "\n{"n":[1,1,1,1]}          ': 7,
    b'"never ended, {[ \\           ': 1,
}


@pytest.mark.parametrize("text", TOKENS)
def test_tokens_are_counted_outside_of_texts_only(text: bytes) -> None:
    assert has_more_tokens(text, TOKENS[text] - 1)
    assert not has_more_tokens(text, TOKENS[text])


def test_the_limit_is_the_contracts() -> None:
    assert (MAX_ARGUMENTS, MAX_DEPTH) == (1_048_576, 64)


TREES = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


def levels_and_values(value: object) -> tuple[int, int]:
    if not isinstance(value, dict | list):
        return 0, 0
    held = cast("list[object]", [*value.values()] if isinstance(value, dict) else value)
    inner = [levels_and_values(one) for one in held]
    deepest = max((levels for levels, _ in inner), default=0)
    return deepest + 1, len(held) + sum(values for _, values in inner)


@settings(max_examples=200, deadline=None)
@given(value=TREES, levels=st.integers(0, 4), values=st.integers(0, 12))
def test_what_is_within_its_bounds_is_so_counted_one_by_one(
    value: object, levels: int, values: int
) -> None:
    deep, many = levels_and_values(value)
    assert is_within(value, levels=levels, values=values) is (deep <= levels and many <= values)


def test_what_is_shorter_than_the_tokens_that_it_may_have_has_no_more() -> None:
    assert not has_more_tokens(b"[,,]", 4)
    assert has_more_tokens(b"[,,,]", 3)
    assert not has_more_tokens(b"[,,]]]]]", 3)
