"""How the text of arguments is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.cli.errors import Usage
from openfang.cli.options import read_object

pytestmark = pytest.mark.requirement("C12.5")
numbers = st.integers(-(2**70), 2**70) | st.sampled_from([2**64 - 1, 2**64, -(2**63), -(2**63) - 1])


def read(value: object) -> object:
    return read_object(json.dumps(value).encode(), "--args")


@given(numbers)
@settings(max_examples=100)
def test_an_integer_is_read_exactly_or_refused(number: int) -> None:
    if -(2**63) <= number < 2**64:
        assert read({"n": [number]}) == {"n": [number]}
    else:
        with pytest.raises(Usage, match="64 bits"):
            read({"n": [number]})


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "123456789012345678901234567890"}',
        r'{"a": "\\", "b": "\" 123456789012345678901234567890"}',
        '{"123456789012345678901234567890": 1}',
        '{"a": 0.123456789012345678901234567890}',
        '{"a": 123456789012345678901234567890.5}',
        '{"a": 123456789012345678901234567890e-5}',
        '{"a": 1e-00000000000000000000000000001}',
    ],
)
def test_digits_in_words_and_fractions_are_no_integers(text: str) -> None:
    assert read_object(text.encode(), "--args") == json.loads(text)


def test_a_number_of_very_many_digits_is_refused_as_well() -> None:
    with pytest.raises(Usage, match="64 bits"):
        read_object(b'{"n": ' + b"9" * 300 + b"}", "--args")
