"""Every way in which a call ends badly, in OpenAI's shape, and whether a client may try again."""

from __future__ import annotations

import json

import pytest

from openfang.core.errors import (
    AuditUnavailable,
    CallTimedOut,
    FlowRefused,
    GuardTripped,
    HomeError,
    OpenFangError,
    Parked,
    PolicyViolation,
    Unrecorded,
)
from openfang.edges.openai.faults import fault

pytestmark = pytest.mark.requirement("C12.4")

RATE = GuardTripped("Too often.", rule="rate_limit", retry_after=2.5)
FAULTS: list[tuple[OpenFangError, int, str, str, dict[bytes, bytes]]] = [
    (RATE, 429, "rate_limit_error", "rate_limit_exceeded", {b"retry-after": b"3"}),
    (
        GuardTripped("Too deep.", rule="recursion_limit"),
        *(429, "rate_limit_error", "recursion_limit"),
        {b"x-should-retry": b"false"},
    ),
    (
        GuardTripped("Never.", rule="rate_limit"),
        *(403, "permission_error", "rate_limit_exceeded", {}),
    ),
    (PolicyViolation("No.", rule="mode"), 403, "permission_error", "mode", {}),
    (FlowRefused("No.", rule="flow.secret"), 403, "permission_error", "flow.secret", {}),
    (
        Parked("Wait.", question_id="question_1", rule="trust"),
        *(403, "permission_error", "trust", {}),
    ),
    (
        AuditUnavailable("Full."),
        *(503, "server_error", "audit_unavailable", {b"retry-after": b"5"}),
    ),
    (HomeError("Gone."), 503, "server_error", "home", {b"retry-after": b"5"}),
    (CallTimedOut("Late."), 500, "server_error", "timeout", {b"x-should-retry": b"false"}),
    (Unrecorded("Lost."), 500, "server_error", "unrecorded", {b"x-should-retry": b"false"}),
]


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: type(row[0]).__name__ + row[3])
def test_an_error_has_its_status_its_code_and_its_way_out(
    row: tuple[OpenFangError, int, str, str, dict[bytes, bytes]],
) -> None:
    error, status, kind, code, headers = row
    answer = fault(error)
    body = json.loads(answer.body)["error"]
    assert (answer.status, body["type"], body["code"]) == (status, kind, code)
    assert dict(answer.headers) == headers
    assert body["message"].startswith(error.message)
    assert body["openfang"]["status"] == status
    if isinstance(error, Parked):
        assert body["openfang"]["approval"] == "question_1"
        assert "openfang approvals approve question_1" in body["message"]
