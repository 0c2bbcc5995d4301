"""A call's ending as JSON (C12.5): the same object over HTTP and from `--json` on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openfang.core.artifacts import artifacts_of
from openfang.core.errors import (
    RATE_LIMIT,
    AuditUnavailable,
    CallFailed,
    CallRefused,
    ConfigError,
    Conflict,
    GuardTripped,
    HomeError,
    InvalidArguments,
    NotFound,
    OpenFangError,
    Parked,
    Rejected,
    Unauthenticated,
    UnknownTool,
)
from openfang.core.results import RECEIPT, text_part

if TYPE_CHECKING:
    from openfang.core.decisions import Explanation, Verdict
    from openfang.core.results import Receipt, Result
    from openfang.core.tools import Tool

_FORBIDDEN = 403
_STATUS: tuple[tuple[type[OpenFangError], int], ...] = (
    (Unauthenticated, 401),
    (UnknownTool, 404),
    (InvalidArguments, 422),
    (GuardTripped, 429),
    (Parked, 202),
    (AuditUnavailable, 503),
    (CallRefused, 403),
    (NotFound, 404),
    (Conflict, 409),
    (ConfigError, 422),
    (HomeError, 503),
)


def status_of(error: OpenFangError) -> int:
    """The HTTP status of a refusal."""
    if isinstance(error, Rejected):
        return error.status
    if isinstance(error, GuardTripped) and error.rule == RATE_LIMIT and error.retry_after is None:
        return _FORBIDDEN  # 429 would say: later
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def result_body(result: Result) -> dict[str, Any]:
    """What a call brought back; `_meta` and `extra` only where a server sent some."""
    body: dict[str, Any] = {
        "call_id": result.call_id,
        "outcome": result.outcome.value,
        "content": list(result.content),
        "structured": result.structured,
        "labels": result.labels.names,
        "audit": receipt_body(result.receipt),
    }
    if result.meta:
        body["_meta"] = dict(result.meta)
    if result.extra:
        body["extra"] = dict(result.extra)
    return body


def message_body(result: Result) -> dict[str, Any]:
    """What an agent answered; of an answer that was cut, its beginning and where the rest is."""
    said = cast("dict[str, Any]", result.structured) if result.structured else {}
    return {
        "response": said.get("response", result.text),
        "session": said.get("session"),
        "ending": said.get("ending"),
        "usage": said.get("usage"),
        "artifacts": artifacts_of(result.content),
        "call_id": result.call_id,
        "audit": receipt_body(result.receipt),
        **({"budget": said["budget"]} if "budget" in said else {}),
    }


def failure_body(failure: CallFailed) -> dict[str, Any]:
    """It ran, and did not end well: an outcome, with the reason as its content."""
    return {
        "call_id": failure.call_id,
        "outcome": "error",
        "content": [text_part(f"Error: {failure.message}")],
        "structured": {"code": failure.code, "way_out": failure.way_out},
        "labels": [],
        "audit": receipt_body(failure.receipt),
    }


def problem_body(error: OpenFangError) -> dict[str, Any]:
    """Nothing ran: an RFC 9457 problem with the rule, every gate's verdict and the way out."""
    body: dict[str, Any] = {
        "type": f"urn:openfang:problem:{error.code}",
        "title": error.code.replace("_", " "),
        "status": status_of(error),
        "detail": error.message,
        "rule": getattr(error, "rule", error.code),
        "way_out": error.way_out,
    }
    if isinstance(error, CallRefused):
        body["gates"] = [verdict_body(verdict) for verdict in error.verdicts]
    if isinstance(error, Parked):
        body["approval"] = error.question_id
    if isinstance(error, GuardTripped) and error.retry_after is not None:
        body["retry_after"] = round(error.retry_after, 3)
    return body


def verdict_body(verdict: Verdict) -> dict[str, Any]:
    """One gate's word."""
    fields: dict[str, Any] = {
        "gate": verdict.gate,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "code": verdict.code,
        "way_out": verdict.way_out,
        "rules": list(verdict.rules),
    }
    return {name: value for name, value in fields.items() if value}


def explanation_body(explanation: Explanation) -> dict[str, Any]:
    """A decision that was asked for without a call."""
    return {
        "tool": explanation.tool.id,
        "outcome": explanation.outcome,
        "gates": [verdict_body(verdict) for verdict in explanation.verdicts],
        "labels": explanation.labels,
    }


def tool_body(tool: Tool) -> dict[str, Any]:
    """A tool as lists show it."""
    return {
        "id": tool.id,
        "name": tool.wire_name,
        "aliases": list(tool.aliases),
        "title": tool.title,
        "description": tool.description,
        "source": tool.source,
        "source_type": tool.kind.source_type,
        "risk": tool.risk.name,
        "side_effects": sorted(tool.tags),
        "effect": tool.sink.effect.value,
        "targets": list(tool.sink.targets),
        "labels": tool.labels.names,
        "trust": tool.trust.value,
        "enabled": tool.enabled,
        "held": tool.hold,
        "requires_admin_token": tool.requires_admin_token,
        "input_schema": dict(tool.input_schema),
        "output_schema": None if tool.output_schema is None else dict(tool.output_schema),
    }


def receipt_beside(call_id: str, receipt: Receipt | None) -> dict[str, Any]:
    """Write a receipt as it stands beside a result: in `_meta`, or in metadata."""
    return {} if receipt is None else {RECEIPT: {"call": call_id, **_receipt(receipt)}}


def receipt_body(receipt: Receipt | None) -> dict[str, Any] | None:
    """Where a call stands in the audit."""
    return None if receipt is None else _receipt(receipt)


def _receipt(receipt: Receipt) -> dict[str, Any]:
    return {"start": receipt.start, "end": receipt.end, "hash": receipt.hash}
