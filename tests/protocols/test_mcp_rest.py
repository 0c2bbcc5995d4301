"""Revisions, `_meta` and results."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.protocols.mcp.errors import BadAnswer
from openfang.protocols.mcp.meta import ClientInfo, Introduction, meta_of, with_meta
from openfang.protocols.mcp.results import InputRequired, Question, needs, next_cursor
from openfang.protocols.mcp.versions import HANDSHAKE, KNOWN, MODERN, choose, is_modern

pytestmark = pytest.mark.requirement("C3.3")


def test_the_newest_revision_that_both_know_is_chosen() -> None:
    assert choose(["2024-11-05", "2026-07-28", "2099-01-01"]) == "2026-07-28"
    assert choose(["2026-07-28", "2025-03-26", "2025-06-18"], HANDSHAKE) == "2025-06-18"
    nothing: list[object] = [None, [], "2026-07-28", ["1999-01-01", 5, None, ["2026-07-28"]], {}]
    for offered in nothing:
        assert choose(offered) == ""
    assert [version for version in KNOWN if is_modern(version)] == list(MODERN)


def test_a_stamp_wins_over_what_was_said_before_and_keeps_the_rest() -> None:
    stamp = Introduction(
        version="2026-07-28",
        client=ClientInfo(name="n", version="1", title="T"),
        capabilities={"roots": {}},
    ).fields()
    given = {"a": 1, "_meta": {"io.modelcontextprotocol/protocolVersion": "fake", "kept": [2]}}
    assert with_meta(given, stamp) == {
        "a": 1,
        "_meta": {
            "kept": [2],
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1", "title": "T"},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        },
    }
    assert given["_meta"] == {"io.modelcontextprotocol/protocolVersion": "fake", "kept": [2]}
    assert with_meta(None, {"x": 1}) == {"_meta": {"x": 1}}
    assert with_meta({"_meta": 5}, {"x": 1}) == {"_meta": {"x": 1}}
    assert meta_of({"_meta": [1]}) == {}


def test_a_result_without_a_type_is_complete() -> None:
    assert needs({}) is None
    assert needs({"resultType": "complete"}) is None


def test_questions_and_state_make_the_next_attempt() -> None:
    result: dict[str, Any] = {
        "resultType": "input_required",
        "inputRequests": {"k": {"method": "roots/list"}},
        "requestState": " as is ",
    }
    needed = needs(result)
    assert needed is not None
    assert needed == InputRequired((Question("k", "roots/list", {}),), " as is ")
    assert needed.retry({"name": "t"}, {"k": {"roots": []}}) == {
        "name": "t",
        "inputResponses": {"k": {"roots": []}},
        "requestState": " as is ",
    }


def test_without_questions_or_state_neither_is_sent_back() -> None:
    state_only = needs({"resultType": "input_required", "requestState": "s"})
    assert state_only is not None
    assert state_only.retry({"a": 1}, {}) == {"a": 1, "requestState": "s"}
    asked: dict[str, Any] = {"k": {"method": "roots/list", "params": {}}}
    stateless = needs({"resultType": "input_required", "inputRequests": asked})
    assert stateless is not None
    assert stateless.retry({}, {"k": {}}) == {"inputResponses": {"k": {}}}


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "task"},
        {"resultType": 5},
        {"resultType": ["complete"]},
        {"resultType": "input_required"},
        {"resultType": "input_required", "requestState": 5},
        {"resultType": "input_required", "inputRequests": [1]},
        {"resultType": "input_required", "inputRequests": {"k": 1}},
        {"resultType": "input_required", "inputRequests": {"k": {"method": "tools/call"}}},
        {"resultType": "input_required", "inputRequests": {"k": {"method": ["roots/list"]}}},
        {
            "resultType": "input_required",
            "inputRequests": {"k": {"method": "roots/list", "params": 5}},
        },
        {
            "resultType": "input_required",
            "inputRequests": {str(n): {"method": "roots/list"} for n in range(17)},
        },
    ],
)
def test_a_result_in_no_known_shape_is_a_bad_answer(result: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer):
        needs(result)


def test_an_empty_cursor_is_a_cursor() -> None:
    assert next_cursor({}) is None
    assert next_cursor({"nextCursor": None}) is None
    assert next_cursor({"nextCursor": ""}) == ""
    with pytest.raises(BadAnswer):
        next_cursor({"nextCursor": 5})
