from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.registry.differences import Change, changes

pytestmark = pytest.mark.requirement("C11.3")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
DEFINITION: dict[str, Any] = {
    "name": "send",
    "title": None,
    "description": "Sends a text.\nTo one person.",
    "inputSchema": {
        "type": "object",
        "properties": {"to": {"type": "string", "enum": ["a", "b"], "default": "a"}},
        "required": ["to"],
    },
    "annotations": {"readOnlyHint": False},
}


def test_each_part_that_changed_is_named_with_what_it_was_and_is() -> None:
    now = json.loads(json.dumps(DEFINITION))
    now["description"] = "Sends a text.\nTo one person\u200b."
    now["inputSchema"]["properties"]["to"]["enum"].append("c")
    del now["inputSchema"]["required"]
    now["annotations"]["readOnlyHint"] = True
    assert changes(DEFINITION, now) == (
        Change(path="annotations.readOnlyHint", before="false", after="true"),
        Change(
            path="description",
            before="Sends a text.\nTo one person.",
            after="Sends a text.\nTo one person\\u200b.",
            hidden=("empty mark (1)",),
        ),
        Change(path="inputSchema.properties.to.enum[2]", before=None, after="c"),
        Change(path="inputSchema.required", before='["to"]', after=None),
    )


def test_what_tags_spell_is_told() -> None:
    spelled = "".join(chr(0xE0000 + ord(one)) for one in "to me")
    (change,) = changes({"a": "x"}, {"a": f"x{spelled}"})
    assert change.hidden == ("tag (5)", "it spells: to me")
    assert change.after
    assert change.after.isascii()


@given(JSON, JSON)
@settings(max_examples=200, deadline=None)
def test_there_is_a_change_if_and_only_if_something_changed(one: Any, other: Any) -> None:
    found = changes(one, other)
    assert bool(found) == (json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    for change in found:
        assert (change.before or "").replace("\n", "").isprintable()
        assert (change.after or "").replace("\n", "").isprintable()
