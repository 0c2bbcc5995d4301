"""Messages: what is built is read back, and nothing that comes over the wire raises."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.protocols.mcp import messages
from openfang.protocols.mcp.errors import BadAnswer, RpcError
from openfang.protocols.mcp.messages import Answer, Ask, Failure, Malformed, Note

pytestmark = pytest.mark.requirement("C3.1", "C3.4")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(TEXT, JSON, max_size=4)
IDS = st.integers(-(2**53), 2**53) | TEXT


def there_and_back(line: bytes) -> object:
    assert b"\n" not in line
    (message,) = messages.read(messages.decode(line))
    return message


@settings(max_examples=60)
@given(IDS, TEXT, FIELDS)
def test_what_is_built_is_read_back(number: int | str, method: str, fields: dict[str, Any]) -> None:
    assert there_and_back(messages.request(number, method, fields)) == Ask(number, method, fields)
    assert there_and_back(messages.notification(method, fields)) == Note(method, fields)
    assert there_and_back(messages.answer(number, fields)) == Answer(number, fields)
    failed = there_and_back(messages.failure(number, RpcError(-5, method, fields)))
    assert isinstance(failed, Failure)
    error = failed.error
    assert (failed.id, error.code, error.message, error.data) == (number, -5, method, fields)


@settings(max_examples=200)
@given(JSON | st.fixed_dictionaries({}, optional={
    "jsonrpc": JSON, "id": JSON, "method": JSON, "params": JSON, "result": JSON, "error": JSON,
}))  # fmt: skip
def test_any_json_is_read_as_something(value: object) -> None:
    for message in messages.read(value):
        assert isinstance(message, Ask | Note | Answer | Failure | Malformed)


def test_params_are_optional() -> None:
    assert there_and_back(messages.request(1, "ping", None)) == Ask(1, "ping", {})
    assert b"params" not in messages.notification("x")


@pytest.mark.parametrize("number", [True, 1.0, None, [1], {"a": 1}, "x" * 1000])
def test_what_is_no_id_is_none(number: object) -> None:
    assert messages.read_id(number) is None


def test_a_batch_is_read_one_by_one() -> None:
    batch: list[object] = [{"method": "a"}, {"id": 1, "result": {}}, 7]
    assert messages.read(batch) == [
        Note("a", {}),
        Answer(1, {}),
        Malformed("a number is not a message"),
    ]
    assert messages.read([]) == [Malformed("a batch of 0 messages")]
    assert len(messages.read([{"method": "a"}] * 1001)) == 1


def test_a_result_that_is_no_object_fails_its_request() -> None:
    (message,) = messages.read({"id": 3, "result": [1]})
    assert isinstance(message, Failure)
    assert message.id == 3
    assert isinstance(message.error, BadAnswer)


def test_an_error_in_any_shape_is_an_error() -> None:
    shapes: list[object] = ["no", 5, [], {"code": "x"}, {"message": 7}, {"code": True}]
    for error in shapes:
        (message,) = messages.read({"id": 3, "error": error, "result": {}})
        assert isinstance(message, Failure), error
        assert message.error.message


def test_a_null_error_beside_a_result_is_none() -> None:
    assert messages.read({"id": 3, "error": None, "result": {"a": 1}}) == [Answer(3, {"a": 1})]


def test_decoding_tolerates_a_mark_and_bytes_that_are_no_text() -> None:
    assert messages.decode(b'\xef\xbb\xbf{"a":1}') == {"a": 1}
    assert messages.decode(b'{"a":"caf\xe9"}') == {"a": "caf\ufffd"}
    with pytest.raises(ValueError, match="unexpected"):
        messages.decode(b"hello")


def test_a_message_of_nothing_but_brackets_is_refused_before_it_is_built() -> None:
    with pytest.raises(ValueError, match="more than 2000000"):
        messages.decode(b"[" + b"[]," * 1_000_001 + b"0]")


def test_text_may_hold_as_many_commas_and_brackets_as_it_likes() -> None:
    for words in ("ab,cd," * 1_000_000, '{"a": [1, 2]}, ' * 300_000):
        assert messages.decode(orjson.dumps({"a": words})) == {"a": words}


@pytest.mark.parametrize("value", [b"1.5", b'"ab"', b"{}", b'{"a":1}'])
def test_a_message_of_millions_of_values_is_refused_before_it_is_built(value: bytes) -> None:
    with pytest.raises(ValueError, match="more than 2000000 values"):
        messages.decode(b"[" + (value + b",") * 2_000_001 + b"0]")


def test_an_answer_that_is_no_json_is_still_somebodys_answer() -> None:
    for broken in (b'{"id":7,"result":NaN}', b'{"result": {"a": NaN}, "id": "7"}', b'{"id":7,"re'):
        found = messages.salvage(broken)
        assert isinstance(found, Malformed)
        assert found.id == 7
        assert messages.read(found) == [found]
    assert messages.salvage(b'{"id":7,"method":"ping",NaN}') is None
    assert messages.salvage(b"{hello}") is None
    assert messages.salvage(b'{"a":1}') == {"a": 1}


def test_mappings_of_any_kind_are_encoded_and_other_things_are_not() -> None:
    line = messages.request(1, "a", MappingProxyType({"b": MappingProxyType({"c": 1})}))
    assert orjson.loads(line)["params"] == {"b": {"c": 1}}
    with pytest.raises(TypeError):
        messages.request(1, "a", {"b": object()})
