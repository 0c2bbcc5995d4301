"""Records in the forms of others (C13.5): CEF and OTLP, read back by their own rules."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData

from openfang.audit.cef import cef_line
from openfang.audit.otlp import otlp_body
from openfang.core.events import AuditEvent

pytestmark = pytest.mark.requirement("C13.5")

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_EVENTS = st.builds(
    AuditEvent,
    audit_id=st.integers(1, 2**62),
    node=_TEXT,
    created_at=st.just("2026-11-17T12:00:00.123456+00:00") | _TEXT,
    event_type=_TEXT,
    level=st.sampled_from(["info", "warning", "error"]) | _TEXT,
    call_id=_TEXT,
    task_id=_TEXT,
    payload=st.dictionaries(st.sampled_from(["reason", "outcome", "rule", "x"]) | _TEXT, _JSON),
    context=st.dictionaries(st.sampled_from(["tool", "caller", "trace", "edge"]) | _TEXT, _JSON),
    hash=_TEXT,
)
_HEADER = re.compile(r"((?:\\.|[^|\\])*)\|")
_PAIR = re.compile(r"(\w+)=((?:\\.|[^=\\])*?)(?= \w+=|$)")
_ENDS = "".join(map(chr, (*range(32), 127, 0x85, 0x2028, 0x2029)))
_SPACES = str.maketrans(dict.fromkeys(_ENDS, " "))
_UNESCAPED = {"\\n": "\n", "\\r": "\r", "\\\\": "\\", "\\=": "=", "\\|": "|"}


def read_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """Read a line by the rules of the format alone."""
    header, place = list[str](), 0
    for _ in range(7):
        match = _HEADER.match(line, place)
        assert match
        header.append(_plain(match[1]))
        place = match.end()
    return header, {name: _plain(value) for name, value in _PAIR.findall(line[place:])}


def _plain(text: str) -> str:
    return re.sub(r"\\.", lambda found: _UNESCAPED[found[0]], text)


def _spoken(value: str) -> str:
    """What the format lets through of a text: a line's ends, and no other control."""
    return "".join(one if one in "\n\r" else one.translate(_SPACES) for one in value)


@given(_EVENTS)
@settings(max_examples=300)
def test_a_cef_line_reads_back_whatever_the_record_holds(event: AuditEvent) -> None:
    line = cef_line(event)
    assert not set(line) & set(_ENDS)
    header, fields = read_cef(line)
    assert header[:3] == ["CEF:0", "OpenFang", "openfang"]
    assert header[4] == event.event_type.translate(_SPACES)
    assert header[6] in {"3", "5", "6", "8"}
    assert fields["externalId"] == str(event.audit_id)
    assert fields.get("deviceExternalId", "") == _spoken(event.node)
    assert fields.get("cs2", "") == _spoken(event.call_id)
    for name, said in (("suser", event.context.get("caller")), ("cs1", event.context.get("tool"))):
        assert fields.get(name, "") == (_spoken(str(said)) if said else "")
    text = orjson.dumps(event.payload).decode() if event.payload else ""
    assert fields.get("msg", "") == _spoken(text[:1023])


def test_nothing_in_a_value_can_be_taken_for_another_field() -> None:
    event = _event({"reason": "x outcome=ok cs1=other\nCEF:0|a|b|c|d|e|9|suser=root"}, {})
    line = cef_line(event)
    _, fields = read_cef(line)
    assert fields["reason"] == event.payload["reason"]
    assert "outcome" not in fields
    assert "suser" not in fields
    assert "\n" not in line


def _event(payload: dict[str, Any], context: dict[str, Any]) -> AuditEvent:
    return AuditEvent(
        audit_id=7,
        node="node-1",
        created_at="2026-11-17T12:00:00.123456+00:00",
        event_type="policy_violation",
        level="warning",
        call_id="call_1",
        task_id="",
        payload=payload,
        context=context,
        hash="ab" * 32,
    )


@given(st.lists(_EVENTS, max_size=4))
@settings(max_examples=200)
def test_an_otlp_line_is_what_opentelemetrys_own_messages_read(events: list[AuditEvent]) -> None:
    text = orjson.dumps(otlp_body(events))
    data = _parsed(orjson.loads(text))
    scopes = [scope for logs in data.resource_logs for scope in logs.scope_logs]
    found = [one for scope in scopes for one in scope.log_records]
    nodes = list(dict.fromkeys(event.node for event in events))
    by_node = sorted(events, key=lambda event: nodes.index(event.node))
    assert [one.event_name for one in found] == [event.event_type for event in by_node]
    for one, event in zip(found, by_node, strict=True):
        assert _attribute(one, "openfang.audit.record") == event.audit_id
        assert _attribute(one, "openfang.audit.hash") == event.hash
        assert {pair.key for pair in one.body.kvlist_value.values} == set(event.payload)


def _parsed(body: dict[str, Any]) -> LogsData:
    """Read it by the JSON of protobuf; OTLP differs from that in its ids, which are hexadecimal."""
    for logs in body["resourceLogs"]:
        for scope in logs["scopeLogs"]:
            for one in scope["logRecords"]:
                trace = one.pop("traceId", "0" * 32)
                assert len(bytes.fromhex(trace)) == 16
    return ParseDict(body, LogsData())


def _attribute(record: LogRecord, name: str) -> object:
    # The last of a name counts: a context may have one that is ours.
    (value, *_) = [pair.value for pair in record.attributes if pair.key == name]
    return getattr(value, str(value.WhichOneof("value")))


def test_an_otlp_record_has_the_time_the_severity_and_the_trace() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    event = _event({"n": 1, "deep": [{"a": None}]}, {"trace": trace, "tool": "builtin:x"})
    (logs,) = otlp_body([event])["resourceLogs"]
    (record,) = logs["scopeLogs"][0]["logRecords"]
    assert record["traceId"] == trace
    assert record["timeUnixNano"] == "1794916800123456000"
    assert (record["severityNumber"], record["severityText"]) == (13, "warning")
    assert record["eventName"] == "policy_violation"
    assert {"key": "openfang.tool", "value": {"stringValue": "builtin:x"}} in record["attributes"]
    assert {"key": "n", "value": {"intValue": "1"}} in record["body"]["kvlistValue"]["values"]
