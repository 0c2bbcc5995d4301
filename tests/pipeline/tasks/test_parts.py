"""Parts of a result in the words of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.core.results import Result, text_part
from openfang.core.tasks import Role
from openfang.pipeline.tasks.parts import answer_in, task_part

pytestmark = pytest.mark.requirement("C5.3")


def resource(**held: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": held}


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ({"type": "text", "text": "a", "_meta": {}}, {"type": "text", "text": "a"}),
        (
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "file", "name": "image", "mime_type": "image/png", "data": "aGk="},
        ),
        (
            {"type": "audio", "data": "aGk=", "mimeType": 7},
            {"type": "file", "name": "audio", "data": "aGk="},
        ),
        (
            {"type": "resource_link", "uri": "file:///a/b%20c.txt", "mimeType": "text/plain"},
            {
                "type": "file",
                "name": "b c.txt",
                "mime_type": "text/plain",
                "uri": "file:///a/b%20c.txt",
            },
        ),
        (
            {"type": "resource_link", "uri": "file:///a/", "name": "mine"},
            {"type": "file", "name": "mine", "uri": "file:///a/"},
        ),
        (
            {"type": "resource_link", "uri": "file:///a/", "name": ""},
            {"type": "file", "name": "a", "uri": "file:///a/"},
        ),
        ({"type": "resource_link", "uri": "/"}, {"type": "file", "name": "/", "uri": "/"}),
        (
            resource(uri="artifact:plan", blob="aGk=", mimeType="x/y"),
            {"type": "file", "name": "plan", "mime_type": "x/y", "data": "aGk="},
        ),
        (
            resource(uri="file:///a", text="{}", mimeType="application/json"),
            {"type": "text", "text": "{}", "mime_type": "application/json"},
        ),
        (
            resource(uri="artifact:a", text='{"a": 1}', mimeType="application/json"),
            {"type": "data", "data": {"a": 1}},
        ),
        (
            resource(uri="artifact:a", text="{", mimeType="application/json"),
            {"type": "text", "text": "{", "mime_type": "application/json"},
        ),
        (resource(uri="artifact:a", text="{}"), {"type": "text", "text": "{}"}),
        ({"type": "odd", "n": 1}, {"type": "data", "data": {"type": "odd", "n": 1}}),
    ],
)
def test_a_part_is_written_in_the_words_of_tasks(
    part: dict[str, Any], written: dict[str, Any]
) -> None:
    assert task_part(part) == written


def test_an_answer_without_words_is_none() -> None:
    assert answer_in(Result(content=(text_part(""),))) is None
    found = answer_in(Result(content=(text_part(""), text_part("well"))))
    assert found is not None
    assert (found.role, found.parts) == (Role.AGENT, (text_part("well"),))
