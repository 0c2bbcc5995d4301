"""Records as OpenTelemetry log records, in the JSON of OTLP. No I/O.

Numbers of 64 bits are text there, ids are hexadecimal, and names are in camel case. One line of an
export is one `LogsData`, which is what a collector takes at `/v1/logs`, too.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.core.events import AuditEvent

_SEVERITIES: Final = {"info": 9, "warning": 13, "error": 17}
_TRACE: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")
_DEEPEST: Final = 16
_INT64: Final = 1 << 63
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MICROSECOND: Final = timedelta(microseconds=1)


def otlp_body(events: Sequence[AuditEvent]) -> dict[str, Any]:
    """Write records as one `LogsData`, those of each node together."""
    nodes = dict.fromkeys(event.node for event in events)
    return {
        "resourceLogs": [
            _of_node(node, [event for event in events if event.node == node]) for node in nodes
        ]
    }


def _of_node(node: str, events: Sequence[AuditEvent]) -> dict[str, Any]:
    resource = {
        "service.name": "openfang",
        "service.version": __version__,
        "service.instance.id": node,
    }
    return {
        "resource": {"attributes": pairs(resource)},
        "scopeLogs": [
            {
                "scope": {"name": "openfang.audit", "version": __version__},
                "logRecords": [_record(event) for event in events],
            }
        ],
    }


def _record(event: AuditEvent) -> dict[str, Any]:
    at = _nanoseconds(event.created_at)
    attributes = {
        "openfang.audit.record": event.audit_id,
        "openfang.audit.hash": event.hash,
        "openfang.call": event.call_id or None,
        "openfang.task": event.task_id or None,
        **{f"openfang.{name}": value for name, value in event.context.items()},
    }
    said = {name: value for name, value in attributes.items() if value is not None}
    trace = event.context.get("trace")
    return {
        "timeUnixNano": at,
        "observedTimeUnixNano": at,
        "severityNumber": _SEVERITIES.get(event.level, 0),
        "severityText": event.level,
        "eventName": event.event_type,
        "body": _any(event.payload, 0),
        "attributes": pairs(said),
        **({"traceId": trace} if isinstance(trace, str) and _TRACE.fullmatch(trace) else {}),
    }


def _nanoseconds(moment: str) -> str:
    try:
        since = datetime.fromisoformat(moment) - _EPOCH
    except (ValueError, TypeError):
        return "0"
    return str(max(since // _MICROSECOND, 0) * 1000)


def pairs(values: Mapping[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    """Write attributes."""
    return [{"key": name, "value": _any(value, depth)} for name, value in values.items()]


def _any(value: Any, depth: int) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Write any JSON; what lies deeper than readers follow is written as its text."""
    match value:
        case dict() | list() if depth >= _DEEPEST:
            return {"stringValue": orjson.dumps(value).decode()}
        case dict():
            values = pairs(cast("dict[str, Any]", value), depth + 1)
            return {"kvlistValue": {"values": values}}
        case list():
            found = cast("list[Any]", value)
            return {"arrayValue": {"values": [_any(one, depth + 1) for one in found]}}
        case _:
            return _plain(value)


def _plain(value: object) -> dict[str, Any]:
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case int() if -_INT64 <= value < _INT64:
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case _:
            return {"stringValue": str(value)}
