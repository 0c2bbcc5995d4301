"""What a client answers is taken to a server only if it is an answer to what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.sources.mcp.federation import ANSWERS, ROOTS, WORDS, Person, entry, node

from openfang.core.clients import ELICITATION, SAMPLING
from openfang.core.clients import ROOTS as LIST_ROOTS
from openfang.sources.mcp.answers import wrong_in

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
