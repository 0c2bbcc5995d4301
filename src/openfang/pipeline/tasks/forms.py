"""A form as a message that asks, and the message that answers as what the form is filled with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.core.errors import InvalidArguments, Rejected
from openfang.core.results import text_part
from openfang.pipeline.tasks.parts import agent_says
from openfang.safety.schemas import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.core.results import Part
    from openfang.core.tasks import TaskMessage

_SCHEMA: Final = "requestedSchema"


def question_of(params: Mapping[str, Any]) -> TaskMessage:
    """Write a question; a form that no plain text can fill comes along as data."""
    text = text_part(str(params.get("message", "")))
    fields = _fields(params)
    if len(fields) == 1 and all(_takes_text(field) for field in fields.values()):
        return agent_says(text)
    return agent_says(text, *_form(params))


def _form(params: Mapping[str, Any]) -> tuple[Part, ...]:
    schema = params.get(_SCHEMA)
    return ({"type": "data", "data": {_SCHEMA: schema}},) if schema else ()


def content_of(params: Mapping[str, Any], answer: TaskMessage) -> Mapping[str, Any]:
    """Fill a form: with an object that fits it, else with the text for what takes it."""
    fields = _fields(params)
    if not fields:
        return {}
    if any(part.get("type") == "file" for part in answer.parts):
        raise _refused("a file has no place in it")
    check = compile_schema(params[_SCHEMA])
    why = "it holds no text"
    for content in (*_objects(answer, fields), *_worded(answer, fields)):
        try:
            check.check(content)
        except InvalidArguments:
            why = check.first_error(content)
            if check.broken:
                return content
        else:
            return content
    raise _refused(why)


def _objects(answer: TaskMessage, fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for part in answer.parts:
        data: object = part.get("data") if part.get("type") == "data" else None
        if isinstance(data, dict) and fields.keys() & cast("dict[str, Any]", data).keys():
            yield cast("dict[str, Any]", data)


def _worded(answer: TaskMessage, fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not any(part.get("type") == "text" for part in answer.parts):
        return
    name = next((name for name, field in fields.items() if _takes_text(field)), None)
    yield {next(iter(fields)): _value(answer.text)} if name is None else {name: answer.text}


def _refused(why: str) -> Rejected:
    return Rejected(
        f"The message does not answer the question: {why}.",
        status=422,
        rule="invalid_message",
        way_out="answer in words, or with an object that fits the form; the task waits for it",
    )


def _fields(params: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = params.get(_SCHEMA)
    fields = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    return cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}


def _takes_text(field: object) -> bool:
    match field:
        case {"type": "string"}:
            return True
        case _:
            return False


def _value(text: str) -> object:
    """Read a number, or yes and no, as whoever asks would write it."""
    word = text.strip().lower()
    if word in {"yes", "no"}:
        return word == "yes"
    try:
        return orjson.loads(word)
    except ValueError:
        return text
