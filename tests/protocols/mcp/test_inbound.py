"""What headers must say of a body, beside the official SDK: it takes and refuses the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from openfang.protocols.mcp.errors import HEADER_MISMATCH, RpcError
from openfang.protocols.mcp.headers import encode_value, find_marks
from openfang.protocols.mcp.inbound import (
    check_arguments,
    check_doubled,
    check_request,
    is_modern,
    status_of,
    value_of,
)
from openfang.protocols.mcp.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from openfang.protocols.mcp.versions import HANDSHAKE, NEWEST

pytestmark = pytest.mark.requirement("C4.4", "C4.6")

Fields = dict[str, Any]
NO_CAPABILITIES: Fields = {}
EXAMPLES = settings(max_examples=300, deadline=None)
SAFE = 2**53 - 1

versions = st.sampled_from([NEWEST, "2025-11-25", "2099-01-01", "", "x"])
methods = st.sampled_from(["tools/call", "prompts/get", "resources/read", "tools/list", "x"])
names = st.sampled_from(["a", "b", "é", " a", "=?base64?YQ==?="])
metas: st.SearchStrategy[Fields | None] = st.none() | st.fixed_dictionaries(
    {},
    optional={
        PROTOCOL_VERSION: versions | st.just(7) | st.none(),
        CLIENT_CAPABILITIES: st.just(NO_CAPABILITIES) | st.none(),
        CLIENT_INFO: st.just({"name": "n", "version": "1"}),
    },
)
params = st.fixed_dictionaries(
    {"_meta": metas}, optional={"name": names | st.none() | st.just(7), "uri": names}
)
sent_names = names | names.map(encode_value) | st.sampled_from(["=?base64?!?=", "=?base64?YR==?="])
headers = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": versions,
        "mcp-method": methods,
        "mcp-name": sent_names.filter(str.isascii),
    },
)


def as_sent(values: dict[str, str]) -> dict[bytes, bytes]:
    """Headers as a server gets them, with the blanks that may stand around a value."""
    return {name.encode(): f" {value}\t".encode() for name, value in values.items()}


def stripped(values: dict[str, str]) -> dict[str, str]:
    return {name: value.strip(" \t") for name, value in values.items()}


def code_of(*checks: Any) -> int | None:
    try:
        for check in checks:
            check()
    except RpcError as error:
        return error.code
    return None


@EXAMPLES
@given(methods, params, headers)
def test_the_same_requests_are_taken_and_refused_with_the_same_code(
    method: str, given: Fields, sent: dict[str, str]
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    theirs = classify_inbound_request(body, headers=stripped(sent))
    wanted = theirs.code if isinstance(theirs, InboundLadderRejection) else None
    assert code_of(lambda: check_request(method, given, as_sent(sent))) == wanted


@EXAMPLES
@given(method=methods, name=names, right=st.booleans())
def test_a_request_whose_headers_say_the_same_is_taken(
    method: str, name: str, *, right: bool
) -> None:
    meta = {PROTOCOL_VERSION: NEWEST, CLIENT_CAPABILITIES: NO_CAPABILITIES}
    sent = {
        "mcp-protocol-version": NEWEST,
        "mcp-method": method,
        "mcp-name": encode_value(name if right else f"{name}!"),
    }
    given = {"_meta": meta, "name": name, "uri": name}
    named = method in {"tools/call", "prompts/get", "resources/read"}
    wanted = HEADER_MISMATCH if named and not right else None
    assert code_of(lambda: check_request(method, given, as_sent(sent))) == wanted


def test_an_unsupported_revision_is_told_which_are() -> None:
    meta = {PROTOCOL_VERSION: "2099-01-01", CLIENT_CAPABILITIES: NO_CAPABILITIES}
    sent = {"mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list"}
    with pytest.raises(RpcError) as refused:
        check_request("tools/list", {"_meta": meta}, as_sent(sent))
    assert refused.value.data == {"supported": [NEWEST], "requested": "2099-01-01"}


def test_errors_have_the_statuses_of_the_sdk() -> None:
    codes = [*ERROR_CODE_HTTP_STATUS, -32603, -32000, -32002]
    assert {code: status_of(code) for code in codes} == {
        code: ERROR_CODE_HTTP_STATUS.get(code, 200) for code in codes
    }


# Arguments that stand in headers

values = st.none() | st.booleans() | st.integers(-SAFE, SAFE) | names | st.just([1])
schema: Fields = {
    "properties": {
        "s": {"type": "string", "x-mcp-header": "S"},
        "i": {"type": "integer", "x-mcp-header": "I"},
        "b": {"type": "boolean", "x-mcp-header": "B"},
        "o": {"properties": {"in": {"type": "string", "x-mcp-header": "In"}}},
    }
}
MARKS = find_marks(schema)
typed = st.fixed_dictionaries(
    {},
    optional={
        "s": names | st.none(),
        "i": st.integers(-SAFE, SAFE) | st.just(42.0) | st.none(),
        "b": st.booleans(),
        "o": st.fixed_dictionaries({}, optional={"in": names}) | st.just(7),
    },
)
changes = st.dictionaries(
    st.sampled_from(["Mcp-Param-S", "Mcp-Param-I", "Mcp-Param-B", "Mcp-Param-In", "Mcp-Param-X"]),
    st.none() | st.sampled_from(["a", "42", "42.0", "42.5", "-1", "true", "", "=?base64?!?="]),
    max_size=2,
)


@EXAMPLES
@given(typed, changes)
def test_the_same_mirrored_arguments_are_taken_and_refused(
    arguments: Fields, changed: dict[str, str | None]
) -> None:
    mirrored = mcp_param_headers(x_mcp_header_map(schema), arguments) | changed
    sent = {name: value for name, value in mirrored.items() if value is not None}
    theirs = validate_mcp_param_headers(schema, arguments, sent)
    lower = as_sent({name.lower(): value for name, value in sent.items()})
    ours = code_of(lambda: check_arguments(MARKS, arguments, lower))
    assert ours == (None if theirs is None else HEADER_MISMATCH)


@pytest.mark.parametrize("number", [SAFE + 2, -SAFE - 2])
@pytest.mark.parametrize("sends", [True, False])
def test_a_number_that_some_mirror_and_some_do_not_is_taken_either_way(
    number: int, *, sends: bool
) -> None:
    sent = {"mcp-param-i": str(number)} if sends else {}
    assert code_of(lambda: check_arguments(MARKS, {"i": number}, as_sent(sent))) is None
    wrong = as_sent({"mcp-param-i": str(number - 1)})
    assert code_of(lambda: check_arguments(MARKS, {"i": number}, wrong)) == HEADER_MISMATCH


# Headers


@given(
    st.lists(st.sampled_from(["mcp-method", "mcp-name", "mcp-protocol-version", "x"]), max_size=4)
)
def test_a_routing_header_that_is_there_twice_is_refused(sent: list[str]) -> None:
    theirs = find_duplicated_routing_header((name, "v") for name in sent)
    ours = code_of(lambda: check_doubled([(name.encode(), b"v") for name in sent]))
    assert (ours == HEADER_MISMATCH) == (theirs is not None)


def test_blanks_around_a_value_do_not_belong_to_it() -> None:
    assert value_of({b"mcp-method": b" \ttools/list \t"}, b"mcp-method") == "tools/list"
    assert value_of({}, b"mcp-method") is None


# Eras


def claiming(version: object) -> Fields:
    return {"params": {"_meta": {PROTOCOL_VERSION: version}}}


@pytest.mark.parametrize(
    ("version", "body", "modern"),
    [
        (NEWEST, {}, True),
        ("2099-01-01", {}, True),
        ("", {}, True),
        (None, claiming(NEWEST), True),
        (None, claiming("2099-01-01"), True),
        ("2025-11-25", claiming(NEWEST), True),
        *((version, {"params": {"_meta": {}}}, False) for version in HANDSHAKE),
        ("2025-11-25", claiming("2025-11-25"), False),
        (None, {"params": {"_meta": 7}}, False),
        (None, {"params": [1]}, False),
        (None, [claiming(NEWEST)], False),
        (None, 7, False),
    ],
)
def test_a_request_is_modern_by_its_header_or_by_what_it_says_itself(
    version: str | None, body: object, *, modern: bool
) -> None:
    assert is_modern(version, body) is modern
