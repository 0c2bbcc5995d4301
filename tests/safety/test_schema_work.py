"""How often a schema makes its reader look at one value: every keyword that leads on counts."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.safety.schema_work import Unbounded, visits_by_depth

pytestmark = pytest.mark.requirement("C7.5")
INNER: dict[str, Any] = {"allOf": [{}, {}]}


@pytest.mark.parametrize(
    "schema",
    [
        *({word: INNER} for word in ("not", "if", "then", "else")),
        *({word: [INNER]} for word in ("allOf", "anyOf", "oneOf")),
        *({word: {"a": INNER, "b": ["c"]}} for word in ("dependentSchemas", "dependencies")),
        *({"$ref": f"#/{word}/x", word: {"x": INNER}} for word in ("$defs", "definitions")),
        {"$ref": "#inner", "$defs": {"x": {**INNER, "$anchor": "inner"}}},
        {"$dynamicRef": "#inner", "$defs": {"x": {**INNER, "$dynamicAnchor": "inner"}}},
        {"$ref": "urn:me#/$defs/x", "$id": "urn:me#", "$defs": {"x": INNER}},
        {"$ref": "#/$defs/1", "$defs": [{}, INNER]},
    ],
    ids=str,
)
def test_what_looks_at_the_same_value_counts_at_once(schema: dict[str, Any]) -> None:
    assert visits_by_depth(schema, 2) == [4, 4]


@pytest.mark.parametrize(
    "schema",
    [
        *(
            {word: INNER}
            for word in (
                "additionalItems",
                "additionalProperties",
                "contains",
                "items",
                "propertyNames",
                "unevaluatedItems",
                "unevaluatedProperties",
            )
        ),
        {"patternProperties": {"a": INNER}},
        {"properties": {"a": INNER, "b": {}}},
        {"prefixItems": [{}, INNER]},
        {"items": [{}, INNER]},
    ],
    ids=str,
)
def test_what_looks_at_a_child_counts_where_there_is_one(schema: dict[str, Any]) -> None:
    assert visits_by_depth(schema, 3) == [1, 4, 4]


def test_children_add_up_when_they_may_be_the_same_child() -> None:
    assert visits_by_depth({"properties": {"a": {}, "b": {}}, "items": {}}, 2) == [1, 3]
    assert visits_by_depth({"properties": {"a": {}}, "allOf": [{"properties": {"a": {}}}]}, 2) == [
        2,
        4,
    ]


def test_a_list_to_choose_from_and_a_meta_schema_are_work() -> None:
    assert visits_by_depth({"enum": [1, 2, 3]}, 1) == [4]
    for meta in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/x"):
        assert visits_by_depth({"$ref": meta}, 1) == [65]


@pytest.mark.parametrize(
    "reference", ["#/$defs/1", "#/$defs/x", "#/type/0", "#nowhere", "urn:other#", "other.json"]
)
def test_what_leads_nowhere_cannot_be_bounded(reference: str) -> None:
    with pytest.raises(Unbounded, match="which is not in it"):
        visits_by_depth({"$id": "urn:me", "$ref": reference, "$defs": [{}], "type": "object"}, 1)


def test_a_schema_inside_with_an_id_of_its_own_cannot_be_bounded() -> None:
    with pytest.raises(Unbounded, match="urn:inner"):
        visits_by_depth({"$defs": {"x": {"$id": "urn:inner"}}}, 1)


def test_references_that_lead_everywhere_cannot_be_bounded() -> None:
    chain: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}]} for n in range(200)
    }
    with pytest.raises(Unbounded, match="too many places"):
        visits_by_depth({"$defs": {**chain, "a200": {}}, "$ref": "#/$defs/a0"}, 1)
