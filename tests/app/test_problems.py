"""Errors over the wire: what a daemon refuses is raised as the very error that it raised."""

from __future__ import annotations

from typing import Any

import pytest

from openfang.app.remote.problems import read_failure, read_problem
from openfang.core import errors
from openfang.core.bodies import failure_body, problem_body
from openfang.core.decisions import Verdict
from openfang.core.errors import CallFailed, CallRefused, OpenFangError
from openfang.core.results import Receipt

pytestmark = pytest.mark.requirement("C12.5")

_VERDICTS = (
    Verdict("disabled", "allow"),
    Verdict("mode", "deny", "no side effects", "planning_mode", "--mode execution"),
    Verdict("spec_frozen", "not_reached"),
)
_SPECIAL: dict[type[OpenFangError], OpenFangError] = {
    errors.UnknownTool: errors.UnknownTool("nothing: such"),
    errors.GuardTripped: errors.GuardTripped(
        "Too often.", rule="rate_limit", way_out="wait", retry_after=1.5
    ),
    errors.Parked: errors.Parked(
        "It waits.", question_id="ask_1", rule="spec_not_frozen", verdicts=_VERDICTS
    ),
    errors.Rejected: errors.Rejected("Too large.", status=413, rule="size", way_out="send less"),
}


def tree(kind: type[OpenFangError]) -> list[type[OpenFangError]]:
    ours = [one for one in kind.__subclasses__() if one.__module__ == errors.__name__]
    return [kind, *(deeper for one in ours for deeper in tree(one))]


def example(kind: type[OpenFangError]) -> OpenFangError:
    if kind in _SPECIAL:
        return _SPECIAL[kind]
    if issubclass(kind, CallRefused):
        return kind("No.", way_out="ask", rule="a_rule", verdicts=_VERDICTS)
    return kind("It went wrong: Error: twice.", way_out="look")


def fields(error: OpenFangError) -> dict[str, Any]:
    return {"kind": type(error), "code": error.code, "args": error.args, **vars(error)}


@pytest.mark.parametrize(
    "kind", [kind for kind in tree(OpenFangError) if not issubclass(kind, CallFailed)]
)
def test_every_refusal_comes_back_with_every_field(kind: type[OpenFangError]) -> None:
    error = example(kind)
    read = read_problem(problem_body(error))
    if kind is OpenFangError:
        assert (read.code, read.message, read.way_out) == ("error", error.message, "look")
    else:
        assert fields(read) == fields(error)
    assert problem_body(read) == problem_body(error)


@pytest.mark.parametrize("kind", tree(CallFailed))
@pytest.mark.parametrize("receipt", [None, Receipt(start=3, end=4)])
def test_every_failure_comes_back_with_every_field(
    kind: type[CallFailed], receipt: Receipt | None
) -> None:
    error = kind("It went wrong.", way_out="look")
    error.call_id, error.receipt = "call_1", receipt
    read = read_failure(error.code, failure_body(error))
    assert fields(read) == fields(error)


def test_a_problem_of_a_newer_version_keeps_its_code_rule_and_words() -> None:
    body = {
        "type": "urn:openfang:problem:moon_phase",
        "title": "moon phase",
        "status": 500,
        "detail": "The moon is full.",
        "rule": "tides",
        "way_out": "wait",
    }
    read = read_problem(body)
    assert isinstance(read, OpenFangError)
    assert problem_body(read) == body


def test_a_failure_of_a_newer_version_is_a_failure_with_its_code() -> None:
    error = CallFailed("It melted.")
    read = read_failure("melted", failure_body(error))
    assert isinstance(read, CallFailed)
    assert failure_body(read)["structured"]["code"] == "melted"
