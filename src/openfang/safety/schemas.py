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

from typing import TYPE_CHECKING, Any, NoReturn, cast

import orjson

from openfang.core.errors import InvalidArguments
from openfang.core.values import dataclass
from openfang.safety.schema_work import Unbounded, visits_by_depth
from openfang.safety.sizes import MAX_ARGUMENTS, MAX_DEPTH, measure

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jsonschema_rs

MAX_SCHEMA = 256 * 1024
MAX_SCHEMA_DEPTH = 64
_MAX_PATTERNS = 100
_MAX_VISITS = 5_000_000
_MAX_VALUES_FOR_ALL_ERRORS = 1_000
_SHOWN_ERRORS = 3
_REFERENCES = (b'"$ref"', b'"$dynamicRef"', b'"$recursiveRef"')


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
        return "" if self.compiled is None else _wrong(self.compiled, value, 1)[0]

    def _errors(self, arguments: dict[str, Any]) -> list[str]:
        """Say what is wrong. Large arguments get the first error only: each one is a copy."""
        assert self.compiled is not None  # noqa: S101 - asked after is_valid only
        large = measure(arguments)[1] > _MAX_VALUES_FOR_ALL_ERRORS
        return _wrong(self.compiled, arguments, 1 if large else _SHOWN_ERRORS)

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
    from openfang.safety.schema_library import compiled  # noqa: PLC0415 - its memory, see there

    try:
        source = orjson.dumps(dict(schema))
        _check_shape(source)
        plain: dict[str, Any] = orjson.loads(source)
        _check_patterns(plain, source)
        validator, unchecked = compiled(plain)
        visits = _visits(plain, source)
    except orjson.JSONEncodeError as error:
        return Validator(broken=f"it is not JSON ({error})")
    except (Unbounded, ValueError) as error:
        return Validator(broken=str(error))
    return Validator(compiled=validator, visits=visits, unchecked=unchecked)


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


def _visits(schema: dict[str, Any], source: bytes) -> tuple[int, ...]:
    """Bound the visits to one value: without references, by the parts that the schema has."""
    if any(word in source for word in _REFERENCES):
        return tuple(visits_by_depth(schema, MAX_DEPTH))
    return (source.count(b"{") + source.count(b"[") + source.count(b",") + 1,)


def _wrong(validator: jsonschema_rs.Validator, value: object, shown: int) -> list[str]:
    from openfang.safety.schema_library import errors, first_error  # noqa: PLC0415 - as above

    return [first_error(validator, value)] if shown == 1 else [*errors(validator, value, shown)]
