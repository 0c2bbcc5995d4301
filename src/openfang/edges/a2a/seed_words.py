"""Requests of the first dialect, read; and what goes back in an envelope. No I/O here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson

from openfang.core.errors import (
    CallRefused,
    Conflict,
    InvalidArguments,
    NotFound,
    OpenFangError,
    Rejected,
    UnknownTool,
)
from openfang.core.tasks import Role
from openfang.core.values import dataclass
from openfang.edges.api.exchange import Answer
from openfang.protocols.a2a.seed import Unreadable, read_message
from openfang.safety.sizes import MAX_DEPTH, is_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.tasks import TaskMessage
    from openfang.edges.a2a.bodies import Body

Number: TypeAlias = "str | int | float | None"

SEND: Final = "tasks/send"
GET: Final = "tasks/get"
CANCEL: Final = "tasks/cancel"
SUBSCRIBE: Final = "tasks/sendSubscribe"
RESUBSCRIBE: Final = "tasks/resubscribe"

_NOT_JSON: Final = -32700
_NO_REQUEST: Final = -32600
_NO_METHOD: Final = -32601
_BAD_PARAMS: Final = -32602
_REFUSED: Final = -32000
_NO_TASK: Final = -32001
_NOT_CANCELABLE: Final = -32002
_UNSUPPORTED: Final = -32004
_INTERNAL: Final = -32603
_CODES: Final = {413: _NO_REQUEST, 503: _REFUSED}
_SHOWN: Final = 60
_MOST_PARTS: Final = 1000
_LONGEST_ID: Final = 256
_AGENT: Final = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A message to an agent: in which conversation, and for which task that asked for it."""

    message: TaskMessage
    agent: str
    context: str
    task: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One JSON-RPC request."""

    number: Number
    method: str
    params: Mapping[str, Any]


class Fault(Exception):  # noqa: N818 - it reads as what it is
    """What is wrong with a request before anybody looks at what it wants."""

    def __init__(self, code: int, message: str, number: Number = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.number = number


def read_ask(body: Body) -> Ask:
    """Read a JSON-RPC request; one without an id is answered as well."""
    value, error = body.value, body.error
    if error is not None:
        if error.rule == "content_type":
            raise error
        raise Fault(_NOT_JSON if error.rule == "not_json" else _NO_REQUEST, error.message)
    if not isinstance(value, dict):
        raise Fault(_NO_REQUEST, "A request is one JSON object.")
    fields = cast("dict[str, Any]", value)
    number, method, params = fields.get("id"), fields.get("method"), fields.get("params", {})
    if isinstance(number, bool) or not isinstance(number, str | int | float | None):
        raise Fault(_NO_REQUEST, "The id of a request is a string or a number.")
    if not isinstance(method, str) or fields.get("jsonrpc", "2.0") != "2.0":
        raise Fault(_NO_REQUEST, "A request has a method, and is of JSON-RPC 2.0.", number)
    if not isinstance(params, dict):
        raise Fault(_BAD_PARAMS, "The params of a request are an object.", number)
    return Ask(number=number, method=method, params=cast("dict[str, Any]", params))


def number_in(body: Body) -> Number:
    """Find the id of a request, as far as it has one."""
    try:
        return read_ask(body).number
    except Fault as fault:
        return fault.number
    except Rejected:
        return None


def read_bare(body: Body) -> Mapping[str, Any]:
    """Read the params of a message that comes to a path of its own, in the same form."""
    value, error = body.value, body.error
    if error is not None:
        raise error
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    params, method = fields.get("params"), fields.get("method", SEND)
    if not isinstance(params, dict):
        raise invalid("The body has no object `params`.")
    if method != SEND:
        raise invalid(f"The method {str(method)[:_SHOWN]!r} is not {SEND}.")
    return cast("dict[str, Any]", params)


def read_wanted(params: Mapping[str, Any]) -> Wanted:
    """Read what sends a message."""
    if not is_within(params, levels=MAX_DEPTH, values=sys.maxsize):
        raise invalid(f"The params are nested deeper than {MAX_DEPTH} levels.")
    said = params.get("message")
    if (
        isinstance(said, dict)
        and len(cast("dict[str, Any]", said).get("parts") or ()) > _MOST_PARTS
    ):
        raise invalid(f"The message has more than {_MOST_PARTS} parts.")
    try:
        message = read_message(cast("object", said))
    except Unreadable as error:
        raise invalid(str(error)) from None
    if message.role is not Role.USER:
        raise invalid("The role of a message to an agent is user.")
    _visible("messageId", message.id)
    if params.get("pushNotification") is not None:
        raise invalid("Push notifications are not offered in this dialect.")
    metadata = _metadata(params)
    told = {**metadata, **message.metadata}
    return Wanted(
        message=message,
        agent=_text(told, _AGENT),
        context=_text(params, "sessionId") or _text(params, "session_id"),
        task=_text(params, "id"),
        metadata=metadata,
    )


def _metadata(params: Mapping[str, Any]) -> Mapping[str, Any]:
    value = params.get("metadata")
    if value is not None and not isinstance(value, dict):
        raise invalid("The metadata is no object.")
    return cast("dict[str, Any]", value or {})


def read_id(params: Mapping[str, Any]) -> str:
    """Read which task is meant."""
    found = _text(params, "id")
    if not found:
        raise invalid("There is no `id` of a task.")
    return found


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"`{name}` is no string.")
    return _visible(name, value)


def _visible(name: str, value: str) -> str:
    if len(value) > _LONGEST_ID:
        raise invalid(f"`{name}` has more than {_LONGEST_ID} characters.")
    if not value.isprintable():
        raise invalid(f"`{name}` has characters that nobody can see.")
    return value


def invalid(message: str) -> Rejected:
    """Say what of a message makes no sense."""
    return Rejected(
        message,
        status=422,
        rule="invalid_message",
        way_out='{"params": {"message": {"role": "user", "parts": [{"type": "text", ...}]}}}',
    )


def no_method(method: str) -> Fault:
    """There is no such method."""
    return Fault(_NO_METHOD, f"There is no method {method[:_SHOWN]!r}.")


def result(number: Number, value: object) -> Answer:
    """Answer in an envelope."""
    return Answer(body=orjson.dumps(enveloped(number, value)))


def enveloped(number: Number, value: object) -> dict[str, Any]:
    """Put something in an envelope."""
    return {"jsonrpc": "2.0", "id": number, "result": value}


def failure(number: Number, error: Fault | OpenFangError, method: str = "") -> Answer:
    """Answer with what is wrong."""
    told = _fault(error) if isinstance(error, Fault) else _refusal(error, method)
    return Answer(body=orjson.dumps({"jsonrpc": "2.0", "id": number, "error": told}))


def _fault(fault: Fault) -> dict[str, Any]:
    return {"code": fault.code, "message": fault.message}


def _refusal(error: OpenFangError, method: str) -> dict[str, Any]:
    rule = error.rule if isinstance(error, CallRefused | Rejected) else error.code
    data = {"rule": rule, "way_out": error.way_out}
    return {"code": _code(error, method), "message": error.message, "data": data}


def _code(error: OpenFangError, method: str) -> int:
    match error:
        case NotFound() | UnknownTool():
            return _NO_TASK
        case Conflict():
            return _NOT_CANCELABLE if method == CANCEL else _UNSUPPORTED
        case Rejected(status=status):
            return _CODES.get(status, _BAD_PARAMS)
        case InvalidArguments():
            return _BAD_PARAMS
        case CallRefused():
            return _REFUSED
        case _:
            return _INTERNAL
