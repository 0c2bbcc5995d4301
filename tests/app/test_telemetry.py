"""What Prometheus reads: true numbers, names that nobody can make up, two formats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from openfang.app.metrics.counts import BUCKETS
from openfang.app.metrics.exposition import written
from openfang.app.metrics.telemetry import MAX_ROUTES, MAX_RULES, MAX_TOOLS, Readings, Telemetry
from openfang.core.calls import Call, Caller
from openfang.core.errors import CallRefused, PolicyViolation, SourceFailed, UnknownTool
from openfang.core.ids import Kind
from openfang.core.results import Outcome, Result, error_result
from openfang.core.tools import Risk, Tool
from openfang.storage.database import at_once
from openfang.testing import TableSource, open_test_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client import Metric

pytestmark = pytest.mark.requirement("C14.3")

CALL = Call(tool="x", caller=Caller(id="tests"), arguments={}, edge="test")
PARSE = "text_string_to_metric_families"
DASHBOARD = "docs/examples/grafana/openfang.json"
OPENMETRICS = "application/openmetrics-text"
# What a Prometheus 2 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def tool(name: str) -> Tool:
    return Tool(id=f"mcp:demo:{name}", kind=Kind.MCP, source="demo", name=name)


def samples(families: Iterable[Metric]) -> Samples:
    found = [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in families
        for sample in family.samples
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def scraped(telemetry: Telemetry, accept: str = "") -> Samples:
    text = written(at_once(telemetry.snapshot()), accept)[0].decode()
    if accept == OPENMETRICS:
        parse: Callable[[str], Iterable[Metric]] = vars(openmetrics_parser)[PARSE]
        return samples(parse(text))
    return samples(text_string_to_metric_families(text))


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def labels(found: Samples, name: str, label: str) -> set[str]:
    return {dict(pairs)[label] for metric, pairs in found if metric == name}


# Calls


async def echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments["text"])


async def unhappy(_: Mapping[str, Any]) -> Result:
    return error_result("no")


async def broken(_: Mapping[str, Any]) -> str:
    raise RuntimeError("broken")


async def test_calls_of_the_pipeline_are_counted_by_tool_outcome_and_rule(tmp_path: Path) -> None:
    low: dict[str, Any] = {"risk": Risk.LOW, "tags": frozenset[str]()}
    off = {**low, "enabled": False}
    table = {"echo": (low, echo), "unhappy": (low, unhappy), "broken": (low, broken)}
    source = TableSource(Kind.MCP, "demo", {**table, "off": (off, echo)})
    async with open_test_app(tmp_path, sources=[source]) as app:
        parts = app.parts
        telemetry = Telemetry(
            Readings(
                audit_records=lambda: parts.writer.head.seq,
                tools=lambda: len(parts.registry.snapshot.tools),
            )
        )
        parts.pipeline.observers = (*parts.pipeline.observers, telemetry)
        for text in "abc":
            await app.call("mcp:demo:echo", text=text)
        await app.call("mcp:demo:unhappy")
        with pytest.raises(SourceFailed):
            await app.call("mcp:demo:broken")
        with pytest.raises(PolicyViolation) as caught:
            await app.call("mcp:demo:off", text="x")
        for number in range(20):
            with pytest.raises(UnknownTool):
                await app.call(f"made_up_{number}")
        text, _ = await telemetry.scrape("")
        records, tools = parts.writer.head.seq, len(parts.registry.snapshot.tools)
    found = samples(text_string_to_metric_families(text.decode()))
    calls = {key: count for key, count in found.items() if key[0] == "openfang_calls_total"}
    assert calls == {
        ("openfang_calls_total", frozenset({("tool", name), ("outcome", outcome)})): count
        for name, outcome, count in (
            ("mcp:demo:echo", "ok", 3),
            ("mcp:demo:unhappy", "error", 1),
            ("mcp:demo:broken", "failed", 1),
        )
    }
    assert value(found, "openfang_call_seconds_count", tool="mcp:demo:echo") == 3
    assert value(found, "openfang_refusals_total", rule=caught.value.rule) == 1
    assert value(found, "openfang_refusals_total", rule="unknown_tool") == 20
    assert value(found, "openfang_audit_records_total") == records
    assert value(found, "openfang_tools") == tools
    assert b"made_up" not in text


@given(st.lists(st.sampled_from(BUCKETS) | st.floats(0, 100, allow_subnormal=False), max_size=30))
@settings(max_examples=50, deadline=None)
def test_a_bucket_holds_every_call_that_took_no_longer_than_it_says(durations: list[float]) -> None:
    telemetry = Telemetry(Readings())
    for seconds in durations:
        telemetry.ended(CALL, tool("x"), Outcome.OK, seconds)
    found = scraped(telemetry)
    for bound in BUCKETS if durations else ():
        counted = value(found, "openfang_call_seconds_bucket", tool="mcp:demo:x", le=str(bound))
        assert counted == sum(seconds <= bound for seconds in durations)
    total = value(found, "openfang_call_seconds_sum", tool="mcp:demo:x")
    assert (total or 0) == pytest.approx(sum(durations))
    count = value(found, "openfang_call_seconds_bucket", tool="mcp:demo:x", le="+Inf")
    assert (count or 0) == len(durations)


def test_buckets_reach_from_a_millisecond_to_a_minute() -> None:
    assert (BUCKETS[0], BUCKETS[-1]) == (0.001, 60.0)
    assert list(BUCKETS) == sorted(set(BUCKETS))


# Names that somebody else chooses


def test_more_tools_than_are_kept_apart_are_counted_together() -> None:
    telemetry = Telemetry(Readings())
    for number in range(MAX_TOOLS + 50):
        telemetry.ended(CALL, tool(str(number)), Outcome.OK, 0.1)
    telemetry.ended(CALL, tool("0"), Outcome.OK, 0.1)
    found = scraped(telemetry)
    assert len(labels(found, "openfang_calls_total", "tool")) == MAX_TOOLS + 1
    assert value(found, "openfang_calls_total", tool="other", outcome="ok") == 50
    assert value(found, "openfang_calls_total", tool="mcp:demo:0", outcome="ok") == 2
    assert len(labels(found, "openfang_call_seconds_count", "tool")) == MAX_TOOLS + 1


def test_rules_and_routes_are_bounded_too() -> None:
    telemetry = Telemetry(Readings())
    for number in range(MAX_RULES + 5):
        telemetry.refused(CALL, None, CallRefused("no", rule=f"rule_{number}"))
    for number in range(MAX_ROUTES + 5):
        telemetry.answered(f"/{number}", 200)
    telemetry.answered("/0", 7_000)
    found = scraped(telemetry)
    assert len(labels(found, "openfang_refusals_total", "rule")) == MAX_RULES + 1
    assert value(found, "openfang_refusals_total", rule="other") == 5
    assert value(found, "openfang_http_requests_total", route="other", status="200") == 5
    assert value(found, "openfang_http_requests_total", route="/0", status="other") == 1


@given(st.text(max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_name_breaks_either_format(name: str) -> None:
    telemetry = Telemetry(Readings())
    telemetry.ended(CALL, tool(name), Outcome.OK, 0.1)
    kept = f"mcp:demo:{name}" if name.isprintable() else "other"
    for accept in ("", OPENMETRICS):
        assert labels(scraped(telemetry, accept), "openfang_calls_total", "tool") == {kept}


def test_a_name_that_is_far_too_long_is_not_kept() -> None:
    telemetry = Telemetry(Readings())
    telemetry.ended(CALL, tool("x" * 10_000), Outcome.OK, 0.1)
    assert labels(scraped(telemetry), "openfang_calls_total", "tool") == {"other"}


# What is looked up


def test_every_reading_is_shown_and_one_that_nobody_supplies_is_not() -> None:
    supplied = {
        "audit_records": "openfang_audit_records_total",
        "audit_checkpoint_age": "openfang_audit_checkpoint_age_seconds",
        "tools": "openfang_tools",
        "calls_in_flight": "openfang_calls_in_flight",
        "approvals_pending": "openfang_approvals_pending",
        "event_listeners": "openfang_event_listeners",
        "http_connections": "openfang_http_connections",
        "tasks_of_loop": "openfang_loop_tasks",
        "log_lines_dropped": "openfang_log_lines_dropped_total",
        "database_statements": "openfang_database_statements_total",
        "model_requests": "openfang_model_requests_total",
        "model_input_tokens": "openfang_model_input_tokens_total",
        "model_output_tokens": "openfang_model_output_tokens_total",
        "model_cost_usd": "openfang_model_cost_usd_total",
    }
    assert set(supplied) == set(Readings.__slots__)
    for number, (reading, metric) in enumerate(supplied.items(), 1):
        found = scraped(Telemetry(Readings(**{reading: lambda number=number: number})))
        assert {name: value(found, name) for name in supplied.values() if value(found, name)} == {
            metric: number
        }


def test_a_reading_that_fails_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def gone() -> float:
        raise OSError("the database is gone")

    found = scraped(Telemetry(Readings(approvals_pending=gone, tools=lambda: 3)))
    assert value(found, "openfang_tools") == 3
    assert value(found, "openfang_approvals_pending") is None
    assert "approvals_pending cannot be read" in caplog.text


def test_a_reload_that_fails_shows_and_the_old_configuration_stays_in_force() -> None:
    telemetry = Telemetry(Readings())
    assert value(scraped(telemetry), "openfang_config_reload_success") is None
    telemetry.reloaded(success=True, at=100.0)
    telemetry.reloaded(success=False, at=200.0)
    found = scraped(telemetry)
    assert value(found, "openfang_config_reload_success") == 0
    assert value(found, "openfang_config_reload_timestamp_seconds") == 100
    telemetry.reloaded(success=True, at=300.0)
    found = scraped(telemetry)
    assert value(found, "openfang_config_reload_success") == 1
    assert value(found, "openfang_config_reload_timestamp_seconds") == 300


def test_the_build_and_the_process_are_told() -> None:
    found = scraped(Telemetry(Readings(), version="1.2.3"))
    assert value(found, "openfang_build_info", version="1.2.3") == 1
    for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds", "start_time_seconds"):
        assert (value(found, f"process_{name}") or 0) > 0


# Formats


@pytest.mark.parametrize(
    ("accept", "is_openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("text/html, application/json", False),
        (OPENMETRICS, True),
        (PROMETHEUS, True),
        (f"{OPENMETRICS};q=0.2, text/plain;q=0.9", False),
        (f"{OPENMETRICS};q=0", False),
        (f"{OPENMETRICS};q=much", False),
        (f"{OPENMETRICS.upper()} ; q=1.0", True),
        (f"{OPENMETRICS};version=9.9.9\r\nX-Forged: 1", True),
    ],
)
def test_the_format_is_the_one_that_is_preferred(accept: str, is_openmetrics: bool) -> None:  # noqa: FBT001 - a parameter
    text, content_type = written(at_once(Telemetry(Readings()).snapshot()), accept)
    if is_openmetrics:
        assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        assert text.endswith(b"# EOF\n")
    else:
        assert content_type == "text/plain; version=0.0.4; charset=utf-8"
        assert b"# EOF" not in text


def test_both_formats_say_the_same() -> None:
    telemetry = Telemetry(Readings(tools=lambda: 3, audit_records=lambda: 7))
    telemetry.ended(CALL, tool("x"), Outcome.TIMEOUT, 61.0)
    telemetry.refused(CALL, None, UnknownTool("made up"))
    telemetry.answered("/api/tools/{id}", 404)
    telemetry.reloaded(success=True, at=1.0)
    plain, openmetrics = (
        {key: count for key, count in found.items() if key[0].startswith("openfang")}
        for found in (scraped(telemetry), scraped(telemetry, OPENMETRICS))
    )
    assert plain == openmetrics
    assert value(plain, "openfang_calls_total", tool="mcp:demo:x", outcome="timeout") == 1


def test_a_start_does_not_pay_for_the_library_that_writes_the_formats() -> None:
    code = "import sys, openfang.app.metrics.telemetry; print('prometheus_client' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_the_dashboard_asks_for_what_is_there_and_names_no_data_source_of_ours() -> None:
    dashboard = json.loads((Path(__file__).parents[2] / DASHBOARD).read_text())
    shown = {family.name for family in text_string_to_metric_families(_everything())}
    asked = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    names = {name for expr in asked for name in re.findall(r"\b(?:openfang|process)_\w+", expr)}
    plain = {re.sub("_(total|bucket)$", "", name) for name in names}
    assert plain - shown == set()
    assert len(asked) >= 15
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    sources = {panel["datasource"]["uid"] for panel in dashboard["panels"]}
    assert sources == {"${datasource}"}


def _everything() -> str:
    readings = {field.name: (lambda: 1.0) for field in fields(Readings)}
    telemetry = Telemetry(Readings(**readings))
    telemetry.ended(CALL, tool("x"), Outcome.OK, 0.1)
    telemetry.turned_away("rule")
    telemetry.answered("/api", 200)
    telemetry.reloaded(success=True, at=1.0)
    return written(at_once(telemetry.snapshot()), "")[0].decode()
