"""The resources of the fixture server: two that stay as they are, one that changes, one of many."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from tests.conformance.served.contents import PICTURE, PNG

if TYPE_CHECKING:
    from tests.conformance.served.turn import Turn
    from tests.conformance.served.world import Json

STATIC: Final = "test://static-text"
BINARY: Final = "test://static-binary"
WATCHED: Final = "test://watched-resource"
TEMPLATE: Final = "test://template/{id}/data"
PLAIN: Final = "text/plain"
# What revisions before 2026-07-28 call a resource that is not there.
_NOT_FOUND: Final = -32002


def _named(uri: str, kind: str, description: str) -> Json:
    name = uri.removeprefix("test://")
    return {"uri": uri, "name": name, "mimeType": kind, "description": description}


RESOURCES: Final = [
    _named(STATIC, PLAIN, "A text that stays as it is"),
    _named(BINARY, PNG, "A picture that stays as it is"),
    _named(WATCHED, PLAIN, "A text that changes"),
]
TEMPLATES: Final[list[Json]] = [
    {
        "uriTemplate": TEMPLATE,
        "name": "data",
        "mimeType": "application/json",
        "description": "What is known of an id",
    }
]


def read(turn: Turn, uri: str) -> Json:
    """Give what is at an address."""
    if uri == STATIC:
        content = {"mimeType": PLAIN, "text": "This text stays as it is."}
    elif uri == BINARY:
        content = {"mimeType": PNG, "blob": PICTURE}
    elif uri == WATCHED:
        content = {"mimeType": PLAIN, "text": f"Edition number {turn.world.edition}"}
    elif found := re.fullmatch("test://template/([^/]+)/data", uri):
        content = {"mimeType": "application/json", "text": json.dumps({"id": found[1]})}
    else:
        code = types.INVALID_PARAMS if turn.modern else _NOT_FOUND
        raise MCPError(code, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, **content}]}
