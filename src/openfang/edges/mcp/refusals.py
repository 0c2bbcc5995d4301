"""What went wrong, as the wire says it: an error of the protocol, or a result for the model."""

from __future__ import annotations

from typing import Any

from openfang.core.bodies import receipt_beside
from openfang.core.errors import (
    AuditUnavailable,
    CallFailed,
    CallRefused,
    GuardTripped,
    NotFound,
    OpenFangError,
    Rejected,
    UnknownTool,
)
from openfang.core.results import text_part
from openfang.protocols.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError

SERVER_ERROR = -32000
_STOPS = (".", "!", "?", ":")


def rpc_error(error: OpenFangError) -> RpcError:
    """Say it in the protocol's words. What is hidden sounds like what does not exist."""
    match error:
        case UnknownTool() | NotFound():
            return RpcError(INVALID_PARAMS, error.message)
        case GuardTripped(depth=depth) if depth:
            return RpcError(SERVER_ERROR, sentence(error), {**_data(error), **_path(error)})
        case CallRefused() | Rejected():
            return RpcError(INVALID_PARAMS, sentence(error), _data(error))
        case _:
            return RpcError(INTERNAL_ERROR, sentence(error), _data(error))


def refusal_result(error: CallRefused | CallFailed) -> dict[str, Any]:
    """Let the model read why there is no result, and what would help."""
    if isinstance(error, UnknownTool | AuditUnavailable):
        raise error
    body: dict[str, Any] = {"content": [text_part(sentence(error))], "isError": True}
    if isinstance(error, CallFailed) and error.receipt is not None:
        body["_meta"] = receipt_beside(error.call_id, error.receipt)
    return body


def sentence(error: OpenFangError) -> str:
    """Say what happened and the way out."""
    if not error.way_out:
        return error.message
    stop = "" if error.message.endswith(_STOPS) else "."
    return f"{error.message}{stop} Way out: {error.way_out}."


def _path(tripped: GuardTripped) -> dict[str, Any]:
    """Tell how deep a chain is that was cut, and who waits in it."""
    return {"depth": tripped.depth, "path": list(tripped.path)}


def _data(error: OpenFangError) -> dict[str, str]:
    rule = error.rule if isinstance(error, CallRefused | Rejected) else error.code
    return {"code": error.code, "rule": rule}
