"""What of checking a schema needs the library for it, which is loaded with the first schema.

It takes 9 MB: a daemon that nobody has called has no use for them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema_rs

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_CHARACTERS = 200
_LINEAR = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=1)


def compiled(schema: dict[str, Any]) -> tuple[jsonschema_rs.Validator, tuple[str, ...]]:
    """Compile, taking out one by one the patterns that the linear engine cannot run.

    They are told, by their places; a schema that is wrong is a ValueError that says so.
    """
    unchecked: list[str] = []
    while True:
        try:
            return _make(schema, _LINEAR), tuple(unchecked)
        except jsonschema_rs.ValidationError as error:
            if not _needs_backtracking(error, schema):
                raise ValueError(_describe(error)) from error
            unchecked.append(_where(error.instance_path))
            _take_out(schema, error.instance_path)


def _make(
    schema: dict[str, Any], patterns: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        schema,
        retriever=_refuse,
        pattern_options=patterns,
        validate_formats=False,
        mask="the value",
    )


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references are not fetched, and {uri:.200} is outside the schema")


def _needs_backtracking(error: jsonschema_rs.ValidationError, schema: dict[str, Any]) -> bool:
    """Whether the error is about a pattern that is right, but not for the linear engine."""
    if not error.instance_path or error.instance_path[-1] != "pattern":
        return False
    pattern = _at(schema, error.instance_path)
    if not isinstance(pattern, str):
        return False
    try:
        _make({"pattern": pattern}, _BACKTRACKING)
    except jsonschema_rs.ValidationError:
        return False
    return True


def _at(schema: dict[str, Any], path: list[str | int]) -> object:
    here: Any = schema
    for step in path:
        here = here[step]
    return here


def _take_out(schema: dict[str, Any], path: list[str | int]) -> None:
    holder: Any = _at(schema, path[:-1])
    del holder[path[-1]]


def first_error(validator: jsonschema_rs.Validator, value: object) -> str:
    """Say what is wrong with a value that does not fit."""
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return _describe(error)
    except ValueError:
        return "$: it is nested too deeply to say more"
    return "the value does not fit"


def errors(validator: jsonschema_rs.Validator, value: object, shown: int) -> Iterator[str]:
    """Say what is wrong with it: the first few, and how many more there are."""
    found = validator.iter_errors(value)
    yield from (_describe(error) for error in islice(found, shown))
    more = sum(1 for _ in found)
    if more:
        yield f"and {more} more"


def _describe(error: jsonschema_rs.ValidationError) -> str:
    """Name place and rule, never the value that was found."""
    message = error.message
    if len(message) > _SHOWN_CHARACTERS:
        message = message[:_SHOWN_CHARACTERS] + "..."
    return f"{_where(error.instance_path)}: {message}"


def _where(path: list[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return ("$" + "".join(steps))[:_SHOWN_CHARACTERS]
