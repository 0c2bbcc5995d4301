"""What a daemon answers in place of a result, as the errors that it stands for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from openfang.core import errors
from openfang.core.errors import CallFailed, CallRefused, GuardTripped, OpenFangError, Parked
from openfang.core.wire import read_receipt, read_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Body: TypeAlias = "Mapping[str, Any]"
_E = TypeVar("_E", bound=OpenFangError)
_ERROR = "Error: "
_UNKNOWN = "Unknown tool: "


def read_problem(body: Body) -> OpenFangError:
    """Read an RFC 9457 problem as `problem_body` writes it; its `type` names the class."""
    code = body["type"].rpartition(":")[2]
    error = _READ.get(code, _newer_problem)(body)
    error.way_out = body.get("way_out", "")
    return error


def _plain(kind: type[OpenFangError], body: Body) -> OpenFangError:
    return kind(body["detail"])


def _refused(kind: type[CallRefused], body: Body) -> CallRefused:
    verdicts = [read_verdict(one) for one in body["gates"]]
    return kind(body["detail"], rule=body["rule"], verdicts=verdicts)


def _parked(body: Body) -> Parked:
    verdicts = [read_verdict(one) for one in body["gates"]]
    question = body["approval"]
    return Parked(body["detail"], question_id=question, rule=body["rule"], verdicts=verdicts)


def _tripped(body: Body) -> GuardTripped:
    return GuardTripped(body["detail"], rule=body["rule"], retry_after=body.get("retry_after"))


def _unknown_tool(body: Body) -> errors.UnknownTool:
    return errors.UnknownTool(body["detail"].removeprefix(_UNKNOWN))


def _rejected(body: Body) -> errors.Rejected:
    return errors.Rejected(body["detail"], status=body["status"], rule=body["rule"])


def _newer_problem(body: Body) -> OpenFangError:
    code = body["type"].rpartition(":")[2]
    return _newer(OpenFangError, code, rule=body.get("rule", code))(body["detail"])


def _newer(kind: type[_E], code: str, **fields: str) -> type[_E]:
    """Make the class of an error that this version has no name for, so that it keeps its code."""
    return cast("type[_E]", type(kind.__name__, (kind,), {"code": code, **fields}))


_READ: Mapping[str, Callable[[Body], OpenFangError]] = {
    **{
        kind.code: partial(_plain, kind)
        for kind in (errors.ConfigError, errors.HomeError, errors.NotFound, errors.Conflict)
    },
    **{
        kind.code: partial(_refused, kind)
        for kind in (
            CallRefused,
            errors.Unauthenticated,
            errors.InvalidArguments,
            errors.PolicyViolation,
            errors.FlowRefused,
            errors.AuditUnavailable,
        )
    },
    Parked.code: _parked,
    GuardTripped.code: _tripped,
    errors.UnknownTool.code: _unknown_tool,
    errors.Rejected.code: _rejected,
}
_FAILED = {
    kind.code: kind
    for kind in (
        CallFailed,
        errors.CallTimedOut,
        errors.CallCancelled,
        errors.SourceFailed,
        errors.Unrecorded,
    )
}


def read_failure(code: str, body: Body) -> CallFailed:
    """Read what `failure_body` writes: it ran, and did not end well."""
    text, audit = body["content"][0]["text"], body["audit"]
    kind = _FAILED.get(code) or _newer(CallFailed, code)
    failure = kind(text.removeprefix(_ERROR), way_out=body["structured"]["way_out"])
    failure.call_id = body["call_id"]
    failure.receipt = read_receipt(audit)
    return failure
