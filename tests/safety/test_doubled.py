"""A member that stands twice in one object, which two readers would read differently."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.safety.doubled import doubled_key

pytestmark = pytest.mark.requirement("C12.2")
MEMBERS = st.recursive(
    st.sampled_from(["1", '"a:b"', '"\\u003a"', '"\\u0041"', "null"]),
    lambda inner: st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(
        lambda pairs: "{" + ",".join(f'"{key}": {value}' for key, value in pairs) + "}"
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a": 1, "a": 2}', "a"),
        ('{"b": [{"a": 1, "c": 2, "c": 3}]}', "c"),
        ('{"a": 1, "\\u0061": 2}', "a"),
        ('{"a": {"x": ":"}, "a": 2}', "a"),
        ('{"a": "1", "a": "\\u003a"}', "a"),
        ('{"a": "\\u003a", "b": 1}', None),
        ('{"a": {"b": 1}, "b": {"a": 2}}', None),
        ('[{"a": 1}, {"a": 1}]', None),
        ('"a: b: c"', None),
    ],
)
def test_only_a_member_of_the_same_object_is_one_too_many(text: str, key: str | None) -> None:
    assert doubled_key(text.encode(), orjson.loads(text)) == key


@settings(max_examples=150, deadline=None)
@given(MEMBERS)
def test_a_glance_sees_what_reading_member_by_member_sees(text: str) -> None:
    found: list[str] = []

    def read(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        found.extend(key for at, key in enumerate(keys) if key in keys[:at])
        return dict(pairs)

    json.loads(text, object_pairs_hook=read)
    assert (doubled_key(text.encode(), orjson.loads(text)) is None) == (not found)


def test_what_is_too_deep_to_be_looked_through_is_left_to_who_takes_it() -> None:
    value: object = 1
    for _ in range(300):
        value = {"a": value}
    text = '{"a":' * 50_000 + "1" + "}" * 50_000
    assert doubled_key(text.encode(), value) is None
