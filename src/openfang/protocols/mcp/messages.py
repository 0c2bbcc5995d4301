"""JSON-RPC messages: built as bytes, read from whatever JSON came.

`read` never raises: what is not a message becomes `Malformed`. A list is read as a batch, which one
revision (2025-03-26) allows.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson

from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import INTERNAL_ERROR, BadAnswer, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

Id: TypeAlias = int | str
MAX_MESSAGE: Final = 48_000_000
MAX_BATCH: Final = 1000
MAX_VALUES: Final = 2_000_000
_LONGEST_ID: Final = 256
_SHOWN: Final = 2000
_EDGE: Final = 512
_ID = re.compile(rb'"id" ?: ?"?([0-9]{1,15})"?[,} ]')
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: it wants an answer with its id."""

    id: Id
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """A notification: it wants no answer."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request, with all of its fields."""

    id: Id
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a request; without an id it belongs to no request that could be read."""

    id: Id | None
    error: RpcError


@dataclass(frozen=True, slots=True)
class Malformed:
    """What is JSON, but no message."""

    reason: str
    id: Id | None = field(default=None)


Message: TypeAlias = Ask | Note | Answer | Failure | Malformed


def read(value: object) -> list[Message]:
    """Read one decoded message, or a batch of them."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        if not 0 < len(items) <= MAX_BATCH:
            return [Malformed(f"a batch of {len(items)} messages")]
        return [read_one(item) for item in items]
    return [read_one(value)]


def read_one(value: object) -> Message:
    """Read one decoded message, or what is left of it."""
    if isinstance(value, Malformed):
        return value
    if not isinstance(value, dict):
        return Malformed(f"{_kind(value)} is not a message")
    message = cast("dict[str, Any]", value)
    if "method" in message:
        return _read_call(message)
    number = read_id(message.get("id"))
    error = message.get("error")
    if error is not None:
        return Failure(number, _read_error(error))
    if "result" in message and number is not None:
        return _read_result(number, message["result"])
    return Malformed("a message has neither method, result nor error", number)


def read_id(value: object) -> Id | None:
    """Accept what may be an id: a whole number or a string; True is not the number one."""
    if type(value) is int:
        return value
    return value if isinstance(value, str) and len(value) <= _LONGEST_ID else None


def request(number: Id, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Build a request."""
    if params is None:
        return encode({"jsonrpc": "2.0", "id": number, "method": method})
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Build a notification."""
    if params is None:
        return encode({"jsonrpc": "2.0", "method": method})
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def answer(number: Id, result: Mapping[str, Any]) -> bytes:
    """Build the answer to a request."""
    return encode({"jsonrpc": "2.0", "id": number, "result": result})


def failure(number: Id | None, error: RpcError) -> bytes:
    """Build the error that answers a request."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": number, "error": body})


def encode(message: Mapping[str, Any]) -> bytes:
    """Encode on one line. Mappings that are not dicts are copied; nothing else is guessed at."""
    return orjson.dumps(message, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def decode(data: bytes | bytearray) -> object:
    """Decode, tolerating a byte order mark and bytes that are not UTF-8; ValueError if no JSON.

    A megabyte of brackets becomes a hundred of objects: there is a limit to them.
    """
    if len(data) > MAX_VALUES:
        _check_values(data)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = _repaired(data)
        if text is None:
            raise
        return orjson.loads(text)


def salvage(data: bytes | bytearray) -> object:
    """Decode, or find out whose answer it was that cannot be; None when nothing tells.

    Whoever waits for it hears of it at once, and not when patience has run out.
    """
    try:
        return decode(data)
    except ValueError as error:
        number = _answered(data)
        return None if number is None else Malformed(f"not in JSON ({error})", number)


def _answered(data: bytes | bytearray) -> int | None:
    """Look for an id where messages have it: at one of the ends."""
    if b'"method"' in data[:_EDGE]:
        return None
    found = _ID.search(data, 0, _EDGE) or _ID.search(data, max(0, len(data) - _EDGE))
    return int(found[1]) if found else None


def _repaired(data: bytes | bytearray) -> str | None:
    """Replace what is not UTF-8; None if that is not what was wrong."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").removeprefix("\ufeff")
    return data.decode().removeprefix("\ufeff") if data.startswith(_BOM) else None


def _check_values(data: bytes | bytearray) -> None:
    """Count what would become an object; text may hold as many commas and brackets as it likes."""
    quotes = data.count(b'"') - data.count(b'\\"')
    if quotes // 2 <= MAX_VALUES:
        if _marks(data) <= MAX_VALUES:
            return
        outside = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
        if sum(map(_marks, outside)) <= MAX_VALUES:
            return
    raise ValueError(f"The message holds more than {MAX_VALUES} values")


def _marks(data: bytes | bytearray) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _plain(value: object) -> object:
    if hasattr(value, "keys"):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def _read_call(message: dict[str, Any]) -> Message:
    method, params = message["method"], message.get("params")
    number = read_id(message.get("id"))
    if not isinstance(method, str):
        return Malformed(f"the method is {_kind(method)}", number)
    if params is None:
        params = {}
    if not isinstance(params, dict):
        return Malformed(f"the params of {method[:_SHOWN]} are {_kind(params)}", number)
    fields = cast("dict[str, Any]", params)
    if "id" not in message:
        return Note(method, fields)
    if number is None:
        return Malformed(f"the id of {method[:_SHOWN]} is {_kind(message['id'])}")
    return Ask(number, method, fields)


def _read_result(number: Id, result: object) -> Message:
    if isinstance(result, dict):
        return Answer(number, cast("dict[str, Any]", result))
    return Failure(number, BadAnswer(f"The result is {_kind(result)}, not an object"))


def _read_error(error: object) -> RpcError:
    if not isinstance(error, dict):
        return RpcError(INTERNAL_ERROR, f"The error is {_kind(error)}, not an object")
    fields = cast("dict[str, Any]", error)
    code, text = fields.get("code"), fields.get("message")
    return RpcError(
        code if type(code) is int else INTERNAL_ERROR,
        text if isinstance(text, str) else "The server gave no reason",
        fields.get("data"),
    )


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
