"""What comes with a message besides its text: found again by its reference, or put into words."""

from __future__ import annotations

import json
from base64 import b64decode
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from openfang.core.agents import Image

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from openfang.core.results import Part

BLOB: Final = "blob"
"""In the place of `data`: the id under which a large part is kept."""
_MOST_SHOWN: Final = 20_000
_MOST_ENCODED: Final = _MOST_SHOWN // 3 * 4
_NO_NAME: Final = "a file"
_MOST_PICTURES: Final = 8
_MOST_OF_ONE: Final = 5_000_000
_BEGINNINGS: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
"""What a model can be shown, and how such a file begins."""


async def whole(
    parts: Iterable[Part], blob: Callable[[str], Awaitable[bytes | None]]
) -> list[Part]:
    """Put what is kept elsewhere back in its place; what is gone by now stays a reference."""
    found: list[Part] = []
    for part in parts:
        kept = await blob(part[BLOB]) if isinstance(part.get(BLOB), str) else None
        if kept is None:
            found.append(part)
        else:
            rest = {name: value for name, value in part.items() if name != BLOB}
            found.append({**rest, "data": json.loads(kept)})
    return found


def in_words(text: str, parts: Iterable[Part]) -> str:
    """Add what a model should know of the parts that are no text."""
    beside = (_words(part) for part in parts if part.get("type") in {"file", "data"})
    return "\n\n".join(filter(None, (text, *beside)))


def pictures(parts: Iterable[Part]) -> Iterator[Image]:
    """Find what a model can be shown: the first few that are what they say, and not too large."""
    files = (part for part in parts if part.get("type") == "file")
    return islice(filter(None, map(_picture, files)), _MOST_PICTURES)


def _picture(part: Mapping[str, Any]) -> Image | None:
    kind = str(part.get("mime_type") or "").partition(";")[0].strip().lower()
    encoded = part.get("data")
    begins = _BEGINNINGS.get(kind)
    if begins is None or not isinstance(encoded, str) or len(encoded) * 3 // 4 > _MOST_OF_ONE:
        return None
    try:
        data = b64decode(encoded, validate=True)
    except ValueError:
        return None
    return Image(media_type=kind, data=data) if data.startswith(begins) else None


def _words(part: Mapping[str, Any]) -> str:
    if part["type"] == "file":
        return _file(part)
    data = json.dumps(part.get("data"), ensure_ascii=False)
    return f"Data: {data[:_MOST_SHOWN]}" if BLOB not in part else "Data, too large to show."


def _file(part: Mapping[str, Any]) -> str:
    """Show a text, at least its beginning; of the rest say what it is."""
    named, kind = part.get("name") or _NO_NAME, part.get("mime_type") or "of no named type"
    data, where = part.get("data"), f" at {part['uri']}" if part.get("uri") else ""
    if not isinstance(data, str):
        return f"Attached: {named} ({kind}){where}"
    size = len(data.rstrip("=")) * 3 // 4
    shown = _beginning(data) if _is_text(str(kind)) else ""
    if not shown:
        return f"Attached: {named} ({kind}, {size} bytes)"
    cut = ", of which this is the beginning" if len(data) > _MOST_ENCODED else ""
    return f"Attached: {named} ({kind}, {size} bytes{cut}):\n{shown}"


def _is_text(kind: str) -> bool:
    plain = kind.partition(";")[0].strip().lower()
    return plain.startswith("text/") or plain == "application/json" or plain.endswith("+json")


def _beginning(data: str) -> str:
    """Decode so much of it as is shown."""
    try:
        return b64decode(data[:_MOST_ENCODED], validate=True).decode(errors="replace")
    except ValueError:
        return ""
