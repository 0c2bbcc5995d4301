"""Arguments against a tool's JSON Schema: compiled once, never fetching, in bounded time.

Schemas come from servers that nobody vouches for, so:

- No reference is ever fetched, neither from the network nor from a file.
- Patterns run on a linear engine. One that only a backtracking engine could run (look-around,
  back references) is left to the tool itself, and listed in `unchecked`.
- `format` is a note, as the current drafts have it, and is not enforced: what an address or a path
  may be is decided by the flow and egress rules, and the tool knows its own formats.
- A schema that is broken, too large or too laborious refuses every call, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, cast

import jsonschema_rs
import orjson

from openfang.core.errors import InvalidArguments
from openfang.safety.schema_work import Unbounded, visits_by_depth
from openfang.safety.sizes import MAX_ARGUMENTS, MAX_DEPTH, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_SCHEMA = 256 * 1024
MAX_SCHEMA_DEPTH = 64
_MAX_PATTERNS = 100
_MAX_VISITS = 5_000_000
_MAX_VALUES_FOR_ALL_ERRORS = 1_000
_SHOWN_ERRORS = 3
_SHOWN_CHARACTERS = 200
_REFERENCES = (b'"$ref"', b'"$dynamicRef"', b'"$recursiveRef"')
_LINEAR = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """A compiled schema; `broken` says why it refuses all, `unchecked` what it leaves out."""

    compiled: jsonschema_rs.Validator | None = None
    visits: tuple[int, ...] = (0,)
    unchecked: tuple[str, ...] = ()
    broken: str = ""

    def check(self, arguments: Mapping[str, Any], *, size: int = MAX_ARGUMENTS) -> None:
        """Raise InvalidArguments unless the arguments fit. `size` is that of their JSON."""
        if self.compiled is None:
            if self.broken:
                self._refuse_broken()
            return
        plain = arguments if isinstance(arguments, dict) else dict(arguments)
        if self.visits[-1] * size > _MAX_VISITS:
            self._check_work(plain)
        if not self.compiled.is_valid(plain):
            raise InvalidArguments(
                "The arguments do not fit the tool's schema: " + "; ".join(self._errors(plain)),
                rule="schema_mismatch",
                way_out="openfang tools show TOOL shows what it takes",
            )

    def first_error(self, value: object) -> str:
        """Say what is wrong with a value that does not fit."""
        return "" if self.compiled is None else _first_error(self.compiled, value)

    def _errors(self, arguments: dict[str, Any]) -> Iterator[str]:
        """Say what is wrong. Large arguments get the first error only: each one is a copy."""
        assert self.compiled is not None  # noqa: S101 - asked after is_valid only
        if measure(arguments)[1] > _MAX_VALUES_FOR_ALL_ERRORS:
            yield _first_error(self.compiled, arguments)
            return
        errors = self.compiled.iter_errors(arguments)
        yield from (_describe(error) for error in islice(errors, _SHOWN_ERRORS))
        more = sum(1 for _ in errors)
        if more:
            yield f"and {more} more"

    def _check_work(self, arguments: dict[str, Any]) -> None:
        depth, values = measure(arguments)
        visits = self.visits[min(depth, len(self.visits)) - 1]
        if visits * values > _MAX_VISITS:
            raise InvalidArguments(
                f"The arguments hold {values} values in {depth} levels, which this tool's schema "
                "could only check with too much work",
                rule="arguments_too_laborious",
                way_out="Send less at once, or nest it less deeply",
            )

    def _refuse_broken(self) -> NoReturn:
        raise InvalidArguments(
            f"The tool's own input schema is broken: {self.broken}",
            rule="schema_broken",
            way_out="Ask whoever serves this tool to correct its schema",
        )


def compile_schema(schema: Mapping[str, Any]) -> Validator:
    """Compile a schema. One that cannot be used makes a validator that refuses every call."""
    if not schema:
        return Validator()
    try:
        source = orjson.dumps(dict(schema))
        _check_shape(source)
        plain: dict[str, Any] = orjson.loads(source)
        _check_patterns(plain, source)
        compiled, unchecked = _compile(plain)
        visits = _visits(plain, source)
    except orjson.JSONEncodeError as error:
        return Validator(broken=f"it is not JSON ({error})")
    except jsonschema_rs.ValidationError as error:
        return Validator(broken=_describe(error))
    except (Unbounded, ValueError) as error:
        return Validator(broken=str(error))
    return Validator(compiled=compiled, visits=visits, unchecked=unchecked)


def _check_shape(source: bytes) -> None:
    if len(source) > MAX_SCHEMA:
        raise Unbounded(f"it is {len(source)} bytes long; at most {MAX_SCHEMA} are taken")
    if source.count(b"{") + source.count(b"[") > MAX_SCHEMA_DEPTH:
        depth, _ = measure(orjson.loads(source))
        if depth > MAX_SCHEMA_DEPTH:
            raise Unbounded(
                f"it is nested {depth} levels deep; at most {MAX_SCHEMA_DEPTH} are taken"
            )


def _check_patterns(schema: dict[str, Any], source: bytes) -> None:
    """Bound the patterns, each of which may take a megabyte compiled."""
    found = source.count(b'"pattern"')
    if b'"patternProperties"' in source:
        found += _pattern_properties(schema)
    if found > _MAX_PATTERNS:
        raise Unbounded(f"it has {found} patterns; at most {_MAX_PATTERNS} are taken")


def _pattern_properties(schema: dict[str, Any]) -> int:
    found, pending = 0, list[Any]([schema])
    while pending:
        node: object = pending.pop()
        if isinstance(node, dict):
            members = cast("dict[str, Any]", node)
            patterns = members.get("patternProperties")
            found += len(cast("dict[str, Any]", patterns)) if isinstance(patterns, dict) else 0
            pending.extend(members.values())
        elif isinstance(node, list):
            pending.extend(cast("list[Any]", node))
    return found


def _compile(schema: dict[str, Any]) -> tuple[jsonschema_rs.Validator, tuple[str, ...]]:
    """Compile, taking out one by one the patterns that the linear engine cannot run."""
    unchecked: list[str] = []
    while True:
        try:
            return _make(schema, _LINEAR), tuple(unchecked)
        except jsonschema_rs.ValidationError as error:
            if not _needs_backtracking(error, schema):
                raise
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


def _visits(schema: dict[str, Any], source: bytes) -> tuple[int, ...]:
    """Bound the visits to one value: without references, by the parts that the schema has."""
    if any(word in source for word in _REFERENCES):
        return tuple(visits_by_depth(schema, MAX_DEPTH))
    return (source.count(b"{") + source.count(b"[") + source.count(b",") + 1,)


def _first_error(compiled: jsonschema_rs.Validator, value: object) -> str:
    try:
        compiled.validate(value)
    except jsonschema_rs.ValidationError as error:
        return _describe(error)
    except ValueError:
        return "$: it is nested too deeply to say more"
    return "the value does not fit"


def _describe(error: jsonschema_rs.ValidationError) -> str:
    """Name place and rule, never the value that was found."""
    message = error.message
    if len(message) > _SHOWN_CHARACTERS:
        message = message[:_SHOWN_CHARACTERS] + "..."
    return f"{_where(error.instance_path)}: {message}"


def _where(path: list[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return ("$" + "".join(steps))[:_SHOWN_CHARACTERS]
