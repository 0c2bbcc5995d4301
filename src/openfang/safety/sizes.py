"""Size, depth and numbers of a call's arguments, and the one canonical form of them (C7.5)."""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import orjson

from openfang.core.errors import InvalidArguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_ARGUMENTS = 1024 * 1024
MAX_DEPTH = 64
# What only looks like JSON (dataclasses, dates) is refused, not guessed at.
_CANONICAL = (
    orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
)
# Each start fits or fails at once, so that the whole is read but once, whatever it is. No text has
# a line break in it: a quote that stands alone hides nothing of the lines below.
_TOKEN = re.compile(rb'[,{\[]|"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*+"?')
_BY_REFERENCE = "Pass large data as a file or a blob reference"


def check_arguments(arguments: Mapping[str, Any]) -> bytes:
    """Return the canonical JSON of the arguments, or refuse them."""
    canonical = _dump(arguments)
    if len(canonical) > MAX_ARGUMENTS:
        raise InvalidArguments(
            f"The arguments are {len(canonical)} bytes of JSON; at most {MAX_ARGUMENTS} are taken",
            rule="arguments_too_large",
            way_out=_BY_REFERENCE,
        )
    # Without that many brackets nothing is that deep, and orjson writes NaN and infinity as null:
    # few calls need the walk.
    if b"null" in canonical or canonical.count(b"{") + canonical.count(b"[") > MAX_DEPTH:
        _walk(arguments)
    return canonical


def measure(value: object) -> tuple[int, int]:
    """Count the levels and the values of something made of dicts and lists."""
    depth, count, level = 0, 0, [value]
    while level:
        depth += 1
        count += len(level)
        level = [child for node in level for child in _children(node)]
    return depth, count


def is_within(value: object, *, levels: int, values: int) -> bool:
    """Whether lists and objects lie in each other no deeper, and hold no more than that."""
    level: list[Any] = [value]
    for _ in range(levels + 1):
        level = [one for one in level if type(one) is dict or type(one) is list]
        if not level:
            return True
        values -= sum(map(len, level))
        if values < 0:
            return False
        level = [one for held in level for one in _within(held)]
    return False


def _within(held: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return held.values() if isinstance(held, dict) else held


def has_more_tokens(json: bytes, most: int) -> bool:
    """Whether JSON that nobody has parsed has more texts, commas and openings than that."""
    if len(json) <= most:
        return False
    return next(islice(_TOKEN.finditer(json), most, None), None) is not None


def _dump(arguments: Mapping[str, Any]) -> bytes:
    plain = arguments if isinstance(arguments, dict) else dict(arguments)
    try:
        return orjson.dumps(plain, option=_CANONICAL)
    except orjson.JSONEncodeError as error:
        if "ecursion" in str(error):
            raise _too_deep() from None
        raise InvalidArguments(
            f"The arguments are not JSON: {error}", rule="arguments_not_json"
        ) from None


def _walk(arguments: Mapping[str, Any]) -> None:
    """Go down level by level: refuse a level too many, and numbers that are none."""
    level: list[Any] = list(arguments.values())
    for _ in range(MAX_DEPTH - 1):
        if not level:
            return
        level = [child for node in level for child in _children(node)]
    for node in level:
        if isinstance(node, dict | list | tuple):
            raise _too_deep()
        _children(node)


def _children(node: object) -> Iterable[Any]:
    match node:
        case float():
            if not math.isfinite(node):
                raise InvalidArguments(
                    f"The arguments hold {node}, which JSON cannot carry",
                    rule="arguments_not_finite",
                )
        case dict():
            return cast("dict[str, Any]", node).values()
        case list() | tuple():
            return cast("list[Any]", node)
        case _:
            pass
    return ()


def _too_deep() -> InvalidArguments:
    return InvalidArguments(
        f"The arguments are nested deeper than {MAX_DEPTH} levels", rule="arguments_too_deep"
    )
