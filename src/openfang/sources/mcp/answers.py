"""Whether what a client answered is an answer to what it was asked; and forms, filled up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from openfang.core import clients
from openfang.core.errors import InvalidArguments
from openfang.safety.schemas import compile_schema

_ACTIONS: Final = ("accept", "decline", "cancel")
_ROLES: Final = ("assistant", "user")


def wrong_in(method: str, params: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Say what is wrong with an answer, if anything is."""
    match method:
        case clients.ELICITATION:
            return _wrong_in_form(params, answer)
        case clients.SAMPLING:
            return _wrong_in_words(answer)
        case clients.ROOTS:
            return _wrong_in_roots(answer.get("roots"))
        case _:
            return ""


def with_defaults(params: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill up an accepted form: a field that was left out has its default, if it has one."""
    if answer.get("action") != "accept":
        return answer
    fields = _mapping(_mapping(params.get("requestedSchema")).get("properties"))
    defaults = {name: _mapping(field).get("default") for name, field in fields.items()}
    known = {name: value for name, value in defaults.items() if value is not None}
    return {**answer, "content": {**known, **_mapping(answer.get("content"))}}


def _wrong_in_form(params: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    action, content = answer.get("action"), answer.get("content")
    if action not in _ACTIONS:
        return f"its action is {str(action)[:100]!r}, none of {', '.join(_ACTIONS)}"
    if content is not None and not isinstance(content, dict):
        return "its content is no object"
    schema: object = params.get("requestedSchema")
    if action != "accept" or not isinstance(schema, dict):
        return ""
    return _misfit(cast("dict[str, Any]", schema), with_defaults(params, answer)["content"])


def _misfit(schema: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Compare with the form; one that cannot be used is left to whoever made it."""
    form = compile_schema(schema)
    if form.broken:
        return ""
    try:
        form.check(content)
    except InvalidArguments:
        return f"its content does not fit the form: {form.first_error(content)}"
    return ""


def _wrong_in_words(answer: Mapping[str, Any]) -> str:
    if answer.get("role") not in _ROLES:
        return f"its role is {str(answer.get('role'))[:100]!r}, none of {', '.join(_ROLES)}"
    if not isinstance(answer.get("model"), str):
        return "it does not name the model"
    content: object = answer.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else [content]
    return "" if all(_has(part, "type") for part in parts) else "its content is no content"


def _wrong_in_roots(roots: object) -> str:
    if not isinstance(roots, list):
        return "it has no list of roots"
    named = all(_has(root, "uri") for root in cast("list[object]", roots))
    return "" if named else "one of its roots has no uri"


def _has(value: object, name: str) -> bool:
    return isinstance(value, dict) and isinstance(cast("dict[str, Any]", value).get(name), str)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
