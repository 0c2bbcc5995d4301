"""Versions, media types, errors and wishes: the rules that need no node."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.protobuf.json_format import ParseDict
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from hypothesis import given
from hypothesis import strategies as st

from openfang.core.calls import Mode
from openfang.core.errors import (
    AuditUnavailable,
    CallTimedOut,
    Conflict,
    GuardTripped,
    HomeError,
    InvalidArguments,
    NotFound,
    OpenFangError,
    PolicyViolation,
    Rejected,
    UnknownTool,
)
from openfang.core.trace import Chain, new_chain, read_chain
from openfang.edges.a2a.faults import Refused, TooMuch, Unavailable, fault_of, told
from openfang.edges.a2a.incoming import check_extensions, check_values, read_version
from openfang.edges.a2a.reading import missing
from openfang.edges.a2a.sdk import build_error_response, build_rest_error_payload, errors
from openfang.edges.a2a.versions import asked_version, is_json, is_served, known_version
from openfang.edges.a2a.wishes import options_of

if TYPE_CHECKING:
    from openfang.edges.api.mount import Came

pytestmark = pytest.mark.requirement("C5.3")

CHAIN = new_chain()
TRACE = "ab" * 16


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("1.0", "1.0"),
        ("1.0.0", "1.0"),
        ("1.0.99", "1.0"),
        ("0.3", "0.3"),
        ("0.3.1", "0.3"),
        ("1", None),
        ("1.0.", None),
        ("1.00", None),
        ("01.0", None),
        ("1.0-beta", None),
        ("1.0.0.0", None),
        ("0.30", None),
        ("\u0661.0", None),
    ],
)
def test_a_version_is_two_numbers_and_a_patch_says_nothing(
    written: str, version: str | None
) -> None:
    assert known_version(written) == version


@pytest.mark.parametrize(
    ("headers", "query", "written"),
    [
        ({}, b"", "0.3"),
        ({b"a2a-version": b" "}, b"", "0.3"),
        ({b"a2a-version": b"1.0"}, b"A2A-Version=0.3", "1.0"),
        ({}, b"x=1&A2A-Version=1.0", "1.0"),
        ({}, b"a2a-version=+1.0+", "1.0"),
        ({b"a2a-version": b""}, b"a2a-version=1.0", "1.0"),
        ({}, b"x=a2a-version", "0.3"),
    ],
)
def test_the_header_counts_before_the_query_and_nothing_is_0_3(
    headers: dict[bytes, bytes], query: bytes, written: str
) -> None:
    assert asked_version(headers, query) == written


@given(st.binary(max_size=20).filter(lambda written: b"." not in written and written.strip()))
def test_a_version_that_nobody_speaks_is_refused(written: bytes) -> None:
    came = cast("Came", SimpleNamespace(headers={b"a2a-version": written}, query=b""))
    with pytest.raises(errors.VersionNotSupportedError, match=r"A2A-Version: 1\.0 or 0\.3"):
        read_version(came)


def test_a_body_is_json_unless_it_says_otherwise() -> None:
    def said(kind: bytes, *, rest: bool) -> bool:
        return is_json({b"content-type": kind}, rest=rest)

    assert is_json({}, rest=False)
    assert said(b"Application/JSON; charset=utf-8", rest=False)
    assert said(b"application/a2a+json", rest=True)
    assert not said(b"application/a2a+json", rest=False)
    assert not said(b"application/jsonp", rest=True)
    assert not said(b"", rest=False)


@pytest.mark.parametrize(
    ("mode", "served"),
    [
        ("text/plain", True),
        ("TEXT/plain; charset=utf-8", True),
        ("text", True),
        ("*/*", True),
        ("application/json", True),
        ("image/png", False),
        ("video/*", False),
        ("", False),
    ],
)
def test_an_answer_is_text_or_json(mode: str, *, served: bool) -> None:
    assert is_served(mode) is served


@given(st.binary(max_size=40), st.sampled_from(["parts", "content"]), st.booleans())
def test_all_base_64_is_base_64(content: bytes, where: str, padded: bool) -> None:  # noqa: FBT001 - drawn
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(content).decode()
        written = text if padded else text.rstrip("=")
        check_values({"message": {where: [{"raw": written}]}})
        check_values({"message": {where: [{"file": {"bytes": written}}]}})


@given(st.text(alphabet="AZaz09+/=-_ é!", min_size=1, max_size=12))
def test_what_is_no_base_64_is_no_content(text: str) -> None:
    try:
        check_values({"message": {"parts": [{"raw": text}]}})
    except errors.InvalidParamsError:
        return
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    assert base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True) is not None


@given(st.recursive(st.none() | st.text() | st.integers(), lambda one: st.lists(one, max_size=3)))
def test_no_shape_of_a_body_breaks_the_look_at_it(body: Any) -> None:
    check_values(body)
    check_values({"message": body, "status": [body]})
    check_values({"message": {"parts": [body, {"file": body}]}})


def test_of_the_extensions_those_that_both_know_are_used() -> None:
    declared = {"a:1": True, "a:2": False}
    assert check_extensions(frozenset({"a:1", "a:3"}), declared) == {"a:1"}
    assert check_extensions(frozenset({"a:1", "a:2"}), declared) == {"a:1", "a:2"}
    assert check_extensions(frozenset({"x"}), {}) == frozenset()
    with pytest.raises(errors.ExtensionSupportRequiredError):
        check_extensions(frozenset({"a:2"}), declared)


FAULTS: list[tuple[OpenFangError, type[errors.A2AError], int, int]] = [
    (NotFound("x"), errors.TaskNotFoundError, -32001, 404),
    (UnknownTool("agent:x"), errors.TaskNotFoundError, -32001, 404),
    (Conflict("x"), errors.UnsupportedOperationError, -32004, 400),
    (Rejected("x", status=422, rule="r"), errors.InvalidParamsError, -32602, 400),
    (Rejected("x", status=503, rule="tasks_full"), Unavailable, -32000, 503),
    (InvalidArguments("x"), errors.InvalidParamsError, -32602, 400),
    (GuardTripped("x", rule="rate_limit"), TooMuch, -32000, 429),
    (PolicyViolation("x"), Refused, -32000, 403),
    (AuditUnavailable("x"), Unavailable, -32000, 503),
    (HomeError("x"), Unavailable, -32000, 503),
    (CallTimedOut("x"), errors.InternalError, -32603, 500),
]


@pytest.mark.parametrize(("error", "kind", "code", "status"), FAULTS)
def test_each_error_of_ours_is_one_of_the_protocols(
    error: OpenFangError, kind: type[errors.A2AError], code: int, status: int
) -> None:
    fault = fault_of(error, CHAIN)
    assert type(fault) is kind
    assert build_error_response(1, fault)["error"]["code"] == code
    payload = build_rest_error_payload(fault)["error"]
    assert payload["code"] == status
    assert all(isinstance(value, str) for value in payload["details"][0]["metadata"].values())


def test_the_details_of_a_wrong_field_are_what_their_types_say() -> None:
    fault = missing("message.parts")
    payload = build_rest_error_payload(fault)["error"]
    assert build_error_response(1, fault)["error"]["data"] == payload["details"]
    info, request = payload["details"]
    violation = {"field": "message.parts", "description": "message.parts is missing or empty."}
    assert request == {"@type": request["@type"], "fieldViolations": [violation]}
    for detail, kind in ((info, ErrorInfo()), (request, BadRequest())):
        assert detail.pop("@type").endswith(kind.DESCRIPTOR.full_name)
        ParseDict(detail, kind)


def test_a_way_out_is_told_and_a_conflict_is_what_the_operation_makes_of_it() -> None:
    error = Conflict("It has ended", way_out="begin another")
    fault = fault_of(error, CHAIN, errors.TaskNotCancelableError)
    assert type(fault) is errors.TaskNotCancelableError
    assert fault.message == "It has ended. Way out: begin another."


def test_what_broke_is_for_the_log_and_not_for_the_peer(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(errors.InternalError) as told_of, told(CHAIN):
        raise RuntimeError("sk-live-of-somebody-else")
    assert "sk-live" not in told_of.value.message
    assert "sk-live" in caplog.text
    with pytest.raises(errors.InvalidParamsError), told(CHAIN):
        raise errors.InvalidParamsError("x")


@pytest.mark.requirement("C8.2")
def test_who_is_too_deep_is_told_how_deep() -> None:
    chain = read_chain(ancestors=("agent:a", "agent:b"))
    fault: Any = fault_of(GuardTripped("x", rule="recursion_limit"), chain)
    assert fault.data == {"rule": "recursion_limit", "depth": "3", "path": "agent:a,agent:b"}


@pytest.mark.requirement("C7.7")
def test_a_message_chooses_in_its_metadata() -> None:
    wanted = {"mode": "planning", "project_id": "p", "spec_hash": "s", "blacklist": ["fs.write"]}
    options = options_of({"openfang": wanted}, CHAIN, {b"x-admin-token": b"secret"})
    assert (options.mode, options.project, options.spec) == (Mode.PLANNING, "p", "s")
    assert options.blacklist == {"fs.write"}
    assert options.admin_token == "secret"
    assert options_of({}, CHAIN).chain == CHAIN
    for wrong in ("planning", None, {"mode": "x"}, {"spec_frozen": True}, {"admin_token": "x"}):
        with pytest.raises(Rejected):
            options_of({"openfang": wrong}, CHAIN)


@pytest.mark.requirement("C8.1", "C8.4")
def test_the_metadata_goes_on_with_a_chain_and_never_shortens_it() -> None:
    night = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "X-OpenStarry-Trace-ID": "night"}

    def chain(metadata: dict[str, Any], before: Chain) -> Chain:
        found = options_of(metadata, before).chain
        assert found is not None
        return found

    fresh = chain(night, CHAIN)
    assert (fresh.trace_id, fresh.starry_id, fresh.shared) == (TRACE, "night", True)
    known = read_chain(starry_id="day", ancestors=("a", "b", "c"))
    found = chain({**night, "openfang/chain": "x"}, known)
    assert (found.trace_id, found.starry_id) == (known.trace_id, "day")
    assert (found.ancestors, found.depth) == (("x", "a", "b", "c"), 5)
    assert chain({"openfang/chain": "x, y"}, CHAIN).depth == 3
    for nonsense in list[Any]([7, "", [], None, "00 zz"]):
        odd = {"traceparent": nonsense, "X-OpenStarry-Trace-ID": nonsense}
        assert chain({**odd, "openfang/chain": [nonsense]}, CHAIN) == CHAIN
