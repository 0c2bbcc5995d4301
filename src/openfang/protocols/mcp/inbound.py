"""What the headers of a request over HTTP must say of its body, and which era it is of. Pure.

Names of headers are lower case, as HTTP servers give them. What is wrong is raised as `RpcError`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from openfang.protocols.mcp.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcError,
)
from openfang.protocols.mcp.headers import NAMED, decode_value, look_up, mirrored
from openfang.protocols.mcp.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from openfang.protocols.mcp.versions import HANDSHAKE, MODERN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.protocols.mcp.headers import Marks

Headers: TypeAlias = "Mapping[bytes, bytes]"
VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
PARAM: Final = b"mcp-param-"
SESSION: Final = b"mcp-session-id"
LAST_EVENT: Final = b"last-event-id"
_BLANK: Final = b" \t"
_OURS: Final = b"mcp-"
_SHOWN: Final = 100
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")
_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


def status_of(code: int) -> int:
    """The HTTP status of an error that answers a modern request."""
    return _STATUS.get(code, 200)


def value_of(headers: Headers, name: bytes) -> str | None:
    """Read a header, without the blanks that may stand around its value."""
    value = headers.get(name)
    return None if value is None else value.strip(_BLANK).decode("latin-1")


def check_doubled(raw: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse a header of the protocol's that is there twice: everybody would read another one."""
    names = [name for name, _ in raw if name.startswith(_OURS)]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise _mismatch(f"{_shown(doubled)} is there more than once")


def is_modern(version: str | None, message: object) -> bool:
    """Whether a request stands alone: by its header, or by what its body says of itself."""
    if version is not None and version not in HANDSHAKE:
        return True
    claimed = _claimed(message)
    return claimed is not None if version is None else claimed in MODERN


def _claimed(message: object) -> object:
    """The revision that a body names for itself."""
    for key in ("params", "_meta", PROTOCOL_VERSION):
        if not isinstance(message, dict):
            return None
        message = cast("dict[str, object]", message).get(key)
    return message


def check_request(method: str, params: Mapping[str, Any], headers: Headers) -> None:
    """Check what a modern request says of itself, and that its headers say the same."""
    version, sent = _version(params), value_of(headers, VERSION)
    if sent is None or sent != version:
        raise _mismatch("MCP-Protocol-Version is not the revision in _meta")
    if value_of(headers, METHOD) != method:
        raise _mismatch("Mcp-Method is not the method of the request")
    named = NAMED.get(method)
    if named is not None and params.get(named) is not None:
        _check_name(headers, named, params[named])
    if version not in MODERN:
        raise unsupported(sent)


def unsupported(version: str, spoken: Sequence[str] = MODERN) -> RpcError:
    """Refuse a revision that is not spoken here."""
    data = {"supported": list(spoken), "requested": version[:_SHOWN]}
    return RpcError(UNSUPPORTED_VERSION, f"{version[:_SHOWN]} is not spoken here", data)


def _version(params: Mapping[str, Any]) -> object:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, f"_meta with {PROTOCOL_VERSION} is missing")
    fields = cast("dict[str, object]", meta)
    for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES):
        if key not in fields:
            raise RpcError(INVALID_PARAMS, f"_meta lacks {key}")
    return fields[PROTOCOL_VERSION]


def _check_name(headers: Headers, key: str, wanted: object) -> None:
    if _decoded(headers, NAME) != wanted:
        raise _mismatch(f"Mcp-Name is not the {key} of the request")


def _decoded(headers: Headers, name: bytes) -> str | None:
    value = value_of(headers, name)
    if value is None:
        return None
    try:
        return decode_value(value)
    except ValueError:
        raise _mismatch(f"{_shown(name)} is not base64 of UTF-8") from None


def check_arguments(marks: Marks, arguments: Mapping[str, Any], headers: Headers) -> None:
    """Check that each argument that is mirrored in a header stands there, and no other."""
    for mark, path in marks.items():
        name = PARAM + mark.lower().encode()
        sent, value = _decoded(headers, name), look_up(arguments, path)
        wanted = mirrored(value)
        if sent != wanted and not _same_number(value, wanted, sent):
            raise _mismatch(f"{_shown(name)} is not the argument {'.'.join(path)[:_SHOWN]}")


def _same_number(value: object, wanted: str | None, sent: str | None) -> bool:
    """Whether a header has the number all the same: `42.0` is 42, and some mirror any."""
    if isinstance(value, bool) or not isinstance(value, int | float) or sent is None:
        return False
    whole = _WHOLE.fullmatch(sent)
    return (whole[1] if whole else sent) in (wanted, str(value))


def _mismatch(reason: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {reason}")


def _shown(name: bytes) -> str:
    return name[:_SHOWN].decode("latin-1")
