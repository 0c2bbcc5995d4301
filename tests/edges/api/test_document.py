"""The OpenAPI document is valid, names every route, and is true: schemathesis finds nothing."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from anyio import to_thread
from schemathesis.engine import Status, StopReason, events, from_schema
from tests.edges.live import live

from openfang.edges.api.endpoint import Access
from openfang.edges.api.table import ENDPOINTS
from openfang.guard.rate import Quota

if TYPE_CHECKING:
    from pathlib import Path

    from schemathesis import BaseSchema, HookContext
    from tests.edges.demo import Demo
    from tests.edges.live import Live

pytestmark = pytest.mark.requirement("C12.1", "C12.2", "C12.5")

# A server that was made up would be connected to, and nothing may leave this machine.
REACHING_OUT = ("POST", "/api/mcp/servers")
SWITCHED_OFF = ("POST /api/a2a/discover", "POST /api/a2a/send")
# `make fuzz` makes up more.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "8"))
# What reaches out of the node stays off, whatever is made up as its arguments.
CONFIG = """
[tools]
disabled = ["web_fetch", "shell_exec", "a2a_discover", "a2a_send"]
[a2a]
enabled = true
[auth.issuer]
url = "https://login.example"
audience = "https://fang.example"
"""
# Whether these fit is not for the document to say: a tool has a schema of its own, SQL a grammar, a
# command may not climb, a secret has the name of a variable, an agent or a task may not be there, a
# schedule has to make sense, an archive to be one, and an integer anywhere in arguments, or in what
# comes with a message, may need over 64 bits.
JUDGED_FURTHER_IN = {
    "include-operation-id": [
        *("call_tool", "explain_call", "query_audit", "add_server", "set_secret"),
        *("send_message", "stream_message"),
        *("discover_agent", "send_elsewhere", "list_tasks", "begin_task"),
        *("create_schedule", "install_extension", "install_skill"),
    ],
    "checks": {
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "400", "403", "404", "409", "422"],
        }
    },
}
MEANT = {"POST /api/schedules", "POST /api/extensions", "POST /api/skills"}
CHECKS = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "positive_data_acceptance",
    "negative_data_rejection",
    "ignored_auth",
    "unsupported_method",
    "allow_header_conformance",
}


async def test_the_document_names_every_route_and_what_it_requires(node: Live) -> None:
    document = (await node.get("/api/openapi.json")).json
    assert document["openapi"] == "3.1.0"
    named = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert set(named) == {(one.method, one.path) for one in ENDPOINTS}
    for endpoint in ENDPOINTS:
        operation = named[endpoint.method, endpoint.path]
        public = endpoint.access is Access.PUBLIC
        assert operation["security"] == ([] if public else [{"key": []}, {"header": []}])
        assert operation["description"] == f"Requires: {endpoint.access.value}."
        assert ("401" in operation["responses"]) is not public
        assert {"403", "500"} <= set(operation["responses"])
    assert document["components"]["securitySchemes"]["header"] == {
        "type": "apiKey",
        "in": "header",
        "name": "X-Api-Key",
    }


async def test_whoever_comes_from_elsewhere_is_refused_as_documented(node: Live) -> None:
    elsewhere = await node.key("elsewhere", edges=["mcp"])
    node.doors.failing = Quota(cells_per_minute=10, burst=1000)
    page = {"Origin": "http://pages.example"}
    document = (await node.get("/api/openapi.json")).json
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{id}", "one").replace("{name}", "one")
        told = (await node.ask(endpoint.method, path, headers=page)).told
        assert (endpoint.path, told) == (endpoint.path, (403, "origin"))
        if endpoint.access not in {Access.PUBLIC, Access.TOKEN}:  # there a key opens nothing
            told = (await node.ask(endpoint.method, path, key=elsewhere)).told
            assert (endpoint.path, told) == (endpoint.path, (403, "edge"))
        assert "403" in document["paths"][endpoint.path][endpoint.method.lower()]["responses"]


def configured(node: Live) -> schemathesis.Config:
    make: Any = schemathesis.Config
    return make.from_dict(
        {
            "seed": 50051,
            "base-url": node.url,
            "headers": {"Authorization": f"Bearer {node.admin}"},
            "request-timeout": 10,
            # Streams have no end: the first event is enough to see that it is one.
            "max-stream-events": 1,
            "generation": {
                "max-examples": EXAMPLES,
                "deterministic": True,
                "database": "none",
                "no-shrink": True,
            },
            "phases": {"stateful": {"generation": {"max-examples": 10}}},
            "operations": [JUDGED_FURTHER_IN],
        }
    )


@dataclass(slots=True)
class Run:
    """What came of it."""

    checks: Counter[str] = field(default_factory=Counter[str])
    statuses: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])
    failures: list[str] = field(default_factory=list[str])
    ended: StopReason | None = None

    def take(self, event: events.EngineEvent) -> None:
        match event:
            case events.ScenarioFinished(recorder=recorder):
                self._scenario(recorder)
            case events.NonFatalError(label=label, value=error):
                self.failures.append(f"{label}: {error}")
            case events.FatalError(exception=error):
                self.failures.append(str(error))
            case events.EngineFinished(stop_reason=reason):
                self.ended = reason
            case _:
                pass

    def _scenario(self, recorder: Any) -> None:
        for case_id, interaction in recorder.interactions.items():
            case = recorder.cases[case_id].value
            counts = self.statuses.setdefault(case.operation.label, Counter())
            if interaction.response is not None:
                counts[interaction.response.status_code] += 1
        for checks in recorder.checks.values():
            for check in checks:
                self.checks[check.name] += 1
                if check.status is not Status.SUCCESS:
                    failed = check.failure_info
                    self.failures.append(f"{failed.failure.message}\n{failed.code_sample}")


def loaded(document: dict[str, Any], node: Live) -> BaseSchema:
    whole: Any = schemathesis.openapi.from_dict(document, config=configured(node))
    whole.validate()
    schema = whole.exclude(path_regex=f"^{REACHING_OUT[1]}", method=REACHING_OUT[0])

    @schema.hook("filter_case")  # type: ignore[reportUntypedFunctionDecorator]
    def keep_the_key(_: HookContext, case: Any) -> bool:
        """It may end every key but the one that it uses itself."""
        ours = case.path_parameters.get("name") == "admin"
        return not (case.method == "DELETE" and ours)

    return schema


def explore(document: dict[str, Any], node: Live) -> Run:
    run = Run()
    for event in from_schema(loaded(document, node)).execute():
        run.take(event)
    return run


async def test_schemathesis_finds_nothing(tmp_path: Path, demo: Demo) -> None:
    async with live(tmp_path / "home", config=CONFIG, sources=[demo.source]) as node:
        demo.released.set()
        # It tries a wrong key at every route: it shall hear of the key, not of the limit.
        node.doors.failing = Quota(cells_per_minute=100_000, burst=100_000)
        document = (await node.get("/api/openapi.json")).json
        run = await to_thread.run_sync(explore, document, node)
        assert run.failures == []
        assert run.ended is StopReason.COMPLETED
        assert set(run.checks) >= CHECKS
        asked = [one for one in ENDPOINTS if (one.method, one.path[:16]) != REACHING_OUT]
        assert set(run.statuses) == {f"{one.method} {one.path}" for one in asked}
        for route, statuses in run.statuses.items():
            # Names of things that exist are found by chance only, and nothing is sent elsewhere.
            chance = "{" in route or route in (*SWITCHED_OFF, *MEANT)
            reached = chance or any(status < 300 for status in statuses)
            assert (route, reached, max(statuses) < 500) == (route, True, True)
        assert (await node.get("/api/audit/verify")).json["intact"]
