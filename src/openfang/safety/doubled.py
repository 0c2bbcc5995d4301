"""Members that a JSON text has twice: two readers could each take another one.

Every body is looked through, on the event loop: what has none is seen at a glance.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

_COLON = b":"
_ESCAPED_COLON = b"\\u003"


def doubled_key(text: bytes, value: object) -> str | None:
    """Return a key that an object of a valid JSON text has twice; `value` is that text, read."""
    if _ESCAPED_COLON not in text and text.count(_COLON) == _colons(value):
        return None
    try:
        json.loads(text, object_pairs_hook=_once)
    except _Doubled as found:
        return found.key
    except RecursionError:
        return None  # whoever takes the value refuses it for its depth
    return None


def _colons(value: object) -> int:
    """Count the colons that are left: a member that another one replaced took its own along."""
    try:
        return orjson.dumps(value).count(_COLON)
    except orjson.JSONEncodeError:
        return -1


class _Doubled(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        raise _Doubled(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return found
