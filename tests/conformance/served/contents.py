"""What the fixture server answers with: the parts of a result, a picture, a sound, and forms."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.conformance.served.world import Json


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def embedded(uri: str, content: str, kind: str = "text/plain") -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": content}}


def said(*parts: Json) -> Json:
    return {"content": list(parts)}


def failed(why: str) -> Json:
    return {"content": [text(why)], "isError": True}


def _chunk(kind: bytes, body: bytes) -> bytes:
    checked = kind + body
    return struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))


def _picture() -> bytes:
    """One red pixel."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _sound() -> bytes:
    """Eight samples of silence."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", 8)
    return b"RIFF" + struct.pack("<I", len(body) + 8) + body + b"\x80" * 8


PNG: Final = "image/png"
PICTURE: Final = base64.b64encode(_picture()).decode()
IMAGE: Final[Json] = {"type": "image", "mimeType": PNG, "data": PICTURE}
AUDIO: Final[Json] = {
    "type": "audio",
    "mimeType": "audio/wav",
    "data": base64.b64encode(_sound()).decode(),
}

# Forms


def _titled(*names: str) -> list[Json]:
    return [{"const": f"value{number}", "title": name} for number, name in enumerate(names, 1)]


_OPTIONS: Final = ["option1", "option2", "option3"]

NAME: Final[Json] = {"name": {"type": "string", "description": "What you are called"}}
COLOR: Final[Json] = {"color": {"type": "string", "description": "The one that you like"}}
CONTEXT: Final[Json] = {"context": {"type": "string", "description": "What it is about"}}
YES: Final[Json] = {"ok": {"type": "boolean", "description": "Whether it is so"}}
USER: Final[Json] = {
    "username": {"type": "string", "description": "Who answers"},
    "email": {"type": "string", "description": "Where to write to"},
}
DEFAULTS: Final[Json] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: Final[Json] = {
    "untitledSingle": {"type": "string", "enum": _OPTIONS},
    "titledSingle": {"type": "string", "oneOf": _titled("One", "Two", "Three")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["The first", "The second", "The third"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": _titled("Red", "Green", "Blue")}},
}
