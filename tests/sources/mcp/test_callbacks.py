"""What servers may ask of us: nothing but what was declared, and forms are filled up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.protocols.mcp.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from openfang.sources.mcp.callbacks import Callbacks, with_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.requirement("C3.3")


async def answered(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"action": "decline", "params": params}


def form(**fields: object) -> dict[str, Any]:
    return {"message": "?", "requestedSchema": {"type": "object", "properties": fields}}


OFFERED = {
    "sampling/createMessage": Callbacks(sample=answered),
    "elicitation/create": Callbacks(elicit=answered),
    "roots/list": Callbacks(roots=answered),
}


@pytest.mark.parametrize(
    ("offered", "declared"),
    [
        (Callbacks(), {}),
        (Callbacks(sample=answered), {"sampling": {}}),
        (Callbacks(elicit=answered, roots=answered), {"elicitation": {"form": {}}, "roots": {}}),
    ],
)
def test_what_is_declared_is_what_is_offered(offered: Callbacks, declared: object) -> None:
    assert offered.capabilities == declared


@pytest.mark.parametrize("method", OFFERED)
async def test_a_function_answers_its_own_method_and_no_other(method: str) -> None:
    offered = OFFERED[method]
    assert (await offered.asked(method, {"a": 1}))["params"] == {"a": 1}
    for other in {*OFFERED, "tools/call"} - {method}:
        with pytest.raises(RpcError) as refused:
            await offered.asked(other, {})
        assert refused.value.code == METHOD_NOT_FOUND


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sampling/createMessage", {"tools": []}),
        ("sampling/createMessage", {"toolChoice": {}}),
        ("elicitation/create", {"mode": "url", "url": "https://example.com"}),
        ("elicitation/create", {"mode": 7}),
    ],
)
async def test_what_was_not_declared_is_refused(method: str, params: dict[str, Any]) -> None:
    with pytest.raises(RpcError) as refused:
        await Callbacks(sample=answered, elicit=answered).asked(method, params)
    assert refused.value.code == INVALID_PARAMS


def test_what_belongs_to_no_call_is_passed_on() -> None:
    heard: list[object] = []
    Callbacks(heard=lambda method, params: heard.append((method, params))).told("n", {"a": 1})
    Callbacks().told("n", {})
    assert heard == [("n", {"a": 1})]


async def test_an_accepted_form_has_the_defaults_of_what_was_left_out() -> None:
    asked = form(
        name={"type": "string", "default": "John"},
        age={"type": "integer", "default": 0},
        sure={"type": "boolean", "default": False},
        colours={"type": "array", "default": ["red"]},
        town={"type": "string"},
    )

    async def elicit(params: Mapping[str, Any]) -> Mapping[str, Any]:
        assert params is asked
        return {"action": "accept", "content": {"age": 7, "more": 1}, "_meta": {"a": 1}}

    assert await Callbacks(elicit=elicit).asked("elicitation/create", asked) == {
        "action": "accept",
        "content": {"name": "John", "age": 7, "sure": False, "colours": ["red"], "more": 1},
        "_meta": {"a": 1},
    }


@pytest.mark.parametrize("action", ["decline", "cancel", None])
def test_a_form_that_was_not_accepted_stays_as_it_is(action: object) -> None:
    answer = {"action": action}
    assert with_defaults(form(a={"default": 1}), answer) is answer


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=100)
@given(schema=JSON, properties=JSON, content=st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_no_schema_is_too_odd_and_nothing_that_was_written_is_changed(
    schema: object, properties: object, content: dict[str, object]
) -> None:
    for odd in (schema, {"type": "object", "properties": properties}):
        filled = with_defaults({"requestedSchema": odd}, {"action": "accept", "content": content})
        assert {name: filled["content"][name] for name in content} == content
