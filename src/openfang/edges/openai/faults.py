"""What is wrong, as OpenAI clients read it: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from typing import Any, Final

import orjson

from openfang.core.bodies import problem_body, status_of
from openfang.core.errors import (
    RATE_LIMIT,
    CallFailed,
    GuardTripped,
    InvalidArguments,
    NotFound,
    OpenFangError,
    Parked,
    Rejected,
    Unauthenticated,
    UnknownTool,
)
from openfang.edges.api.exchange import Answer, problem

_TYPES: Final = {
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}
_BAD: Final = "invalid_request_error"
_STATUS: Final[tuple[tuple[type[OpenFangError], int], ...]] = (
    (InvalidArguments, 400),
    (Parked, 403),  # 202 would look like an answer
)
_NEVER_AGAIN: Final = (b"x-should-retry", b"false")
_LIMITED: Final = 429


class Unfit(Rejected):
    """A request that is not as it must be; `param` is the place."""

    def __init__(
        self, message: str, param: str | None, *, rule: str = "invalid_value", way_out: str = ""
    ) -> None:
        super().__init__(message, status=400, rule=rule, way_out=way_out)
        self.param = param


def fault_body(error: OpenFangError) -> dict[str, Any]:
    """Write it; our own words for it stand beside, where clients do not look."""
    status = _status(error)
    way_out = f" Way out: {error.way_out}." if error.way_out else ""
    return {
        "error": {
            "message": f"{error.message}{way_out}",
            "type": _TYPES.get(status, _BAD),
            "param": error.param if isinstance(error, Unfit) else _param(error),
            "code": _code(error),
            "openfang": {**problem_body(error), "status": status},
        }
    }


def fault(error: OpenFangError) -> Answer:
    """Answer with it. These clients try again by themselves: what ran, they must not."""
    headers = problem(error).headers
    if isinstance(error, CallFailed) or (_status(error) == _LIMITED and not headers):
        headers = (*headers, _NEVER_AGAIN)
    return Answer(body=orjson.dumps(fault_body(error)), status=_status(error), headers=headers)


def _status(error: OpenFangError) -> int:
    found = (status for kind, status in _STATUS if isinstance(error, kind))
    return next(found, 0) or status_of(error)


def _param(error: OpenFangError) -> str | None:
    return "model" if isinstance(error, UnknownTool | NotFound) else None


def _code(error: OpenFangError) -> str:
    match error:
        case Unauthenticated():
            return "invalid_api_key"
        case UnknownTool() | NotFound():
            return "model_not_found"
        case GuardTripped(rule=rule) if rule == RATE_LIMIT:
            return "rate_limit_exceeded"
        case _:
            return problem_body(error)["rule"]
