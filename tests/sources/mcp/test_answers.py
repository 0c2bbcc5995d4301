"""What a client answers is taken to a server only if it is an answer to what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.mcp.federation import ANSWERS, ROOTS, WORDS, Person, entry, node

from openfang.core.clients import ELICITATION, SAMPLING
from openfang.core.clients import ROOTS as LIST_ROOTS
from openfang.sources.mcp.answers import with_defaults, wrong_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.requirement("C1.6", "C3.10")
FORM: Mapping[str, Any] = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}},
        "required": ["name", "age"],
    },
}
UNUSABLE: Mapping[str, Any] = {"message": "?", "requestedSchema": {"type": 5}}
ADDRESS: Mapping[str, Any] = {"mode": "url", "url": "https://example.com/", "message": "Sign in"}


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        (ELICITATION, FORM, {"action": "accept", "content": {"name": "Ada"}}),
        (ELICITATION, FORM, {"action": "decline"}),
        (ELICITATION, FORM, {"action": "cancel", "content": None}),
        (ELICITATION, UNUSABLE, {"action": "accept", "content": {"name": 5}}),
        (ELICITATION, ADDRESS, {"action": "accept"}),
        (SAMPLING, {}, WORDS),
        (SAMPLING, {}, {**WORDS, "content": [WORDS["content"], {"type": "tool_use"}]}),
        (LIST_ROOTS, {}, ROOTS),
        (LIST_ROOTS, {}, {"roots": []}),
    ],
)
def test_an_answer_is_right(
    method: str, params: Mapping[str, Any], answer: Mapping[str, Any]
) -> None:
    assert not wrong_in(method, params, answer)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (ELICITATION, {"action": "evil", "content": 5}),
        (ELICITATION, {"content": {"name": "Ada"}}),
        (ELICITATION, {"action": "accept", "content": 5}),
        (ELICITATION, {"action": "decline", "content": [1]}),
        (ELICITATION, {"action": "accept", "content": {"name": 5}}),
        (ELICITATION, {"action": "accept"}),
        (SAMPLING, {**WORDS, "role": "system"}),
        (SAMPLING, {**WORDS, "content": "Paris"}),
        (SAMPLING, {**WORDS, "content": [{"text": "Paris"}]}),
        (SAMPLING, {**WORDS, "model": None}),
        (LIST_ROOTS, {}),
        (LIST_ROOTS, {"roots": {"uri": "file:///"}}),
        (LIST_ROOTS, {"roots": [{"uri": 5}]}),
    ],
)
def test_an_answer_is_wrong(method: str, answer: Mapping[str, Any]) -> None:
    assert wrong_in(method, FORM, answer)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_wrong_answer_is_an_error_to_whoever_asked(tmp_path: Path, era: str) -> None:
    async def evil(params: Mapping[str, Any]) -> Mapping[str, Any]:
        del params
        return {"action": "evil", "content": 5}

    person = Person(answers={**ANSWERS, ELICITATION: evil})
    async with node(tmp_path, entry("peer", era)) as it:
        question = {"method": ELICITATION, "params": FORM}
        result = await it.call("ask", person, questions=[question])
        assert "answered elicitation/create wrongly" in f"{result.text} {result.structured}"
        assert all("evil" not in str(one.get("result")) for one in await it.seen())


def form(**fields: object) -> dict[str, Any]:
    return {"message": "?", "requestedSchema": {"type": "object", "properties": fields}}


def test_an_accepted_form_has_the_defaults_of_what_was_left_out() -> None:
    asked = form(
        name={"type": "string", "default": "John"},
        age={"type": "integer", "default": 0},
        sure={"type": "boolean", "default": False},
        colours={"type": "array", "default": ["red"]},
        town={"type": "string"},
    )
    answer = {"action": "accept", "content": {"age": 7, "more": 1}, "_meta": {"a": 1}}
    assert with_defaults(asked, answer) == {
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
