"""Records as ArcSight's Common Event Format, one line each. No I/O.

A line holds who did what with which tool and how it ended; of the rest of the record as much as the
format lets a message have. JSON lines and OTLP hold all of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openfang.core.events import AuditEvent

_SEVERITIES: Final = {"info": 3, "warning": 6, "error": 8}
_UNKNOWN: Final = 5
_LONGEST_MESSAGE: Final = 1023
_LONGEST: Final = 4000
# What ends a line, or is none of text: the format has no word for it but these two.
_CONTROLS: Final = {
    **dict.fromkeys((*range(32), 127, 0x85, 0x2028, 0x2029), " "),
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}
_IN_VALUE: Final = {**_CONTROLS, ord("\\"): "\\\\", ord("="): "\\="}
_IN_HEADER: Final = {
    **_CONTROLS,
    ord("\n"): " ",
    ord("\r"): " ",
    ord("\\"): "\\\\",
    ord("|"): "\\|",
}


def cef_line(event: AuditEvent) -> str:
    """Write one record."""
    header = (
        *("CEF:0", "OpenFang", "openfang", __version__, event.event_type),
        event.event_type.replace("_", " "),
        str(_SEVERITIES.get(event.level, _UNKNOWN)),
    )
    said = " ".join(f"{name}={_value(name, value)}" for name, value in _fields(event) if value)
    return "|".join((*(text.translate(_IN_HEADER) for text in header), said))


def _value(name: str, value: object) -> str:
    most = _LONGEST_MESSAGE if name == "msg" else _LONGEST
    return str(value)[:most].translate(_IN_VALUE)


def _fields(event: AuditEvent) -> Iterator[tuple[str, object]]:
    payload, context = event.payload, event.context
    yield from (
        ("rt", _milliseconds(event.created_at)),
        ("externalId", event.audit_id),
        ("deviceExternalId", event.node),
        ("suser", context.get("caller")),
        ("app", context.get("edge")),
        ("outcome", payload.get("outcome") or payload.get("decision")),
        ("reason", payload.get("reason")),
    )
    labelled = (
        ("tool", context.get("tool")),
        ("call", event.call_id),
        ("task", event.task_id),
        ("trace", context.get("trace")),
        ("rule", payload.get("rule")),
        ("hash", event.hash),
    )
    for number, (label, value) in enumerate(labelled, 1):
        if value:
            yield f"cs{number}Label", label
            yield f"cs{number}", value
    yield "msg", _json(payload)


def _milliseconds(moment: str) -> int:
    try:
        return int(datetime.fromisoformat(moment).timestamp() * 1000)
    except ValueError:
        return 0


def _json(value: Any) -> str:  # noqa: ANN401 - any JSON
    return orjson.dumps(value).decode() if value else ""
