"""What one node signs holds once, for one request, at one process, for a minute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from openfang.app.cluster.signing import Signing
from openfang.core.errors import Unauthenticated
from openfang.testing.clock import ManualClock

pytestmark = pytest.mark.requirement("C13.3")
KEY = bytes(range(32))


@dataclass(frozen=True, slots=True)
class Request:
    """What is signed, and checked as it arrives."""

    method: str = "POST"
    target: str = "/api/cluster/calls"
    body: bytes = b'{"server":"mail"}'


@dataclass(slots=True)
class Pair:
    """A node that asks, and one that is asked."""

    clock: ManualClock = field(default_factory=ManualClock)
    there: ManualClock = field(default_factory=ManualClock)
    key: bytes = KEY
    asked: Signing = field(init=False)

    def __post_init__(self) -> None:
        self.asked = Signing(KEY, me="b", here="proc_b", clock=self.there)

    def signed(self, request: Request, to: str = "proc_b") -> str:
        signing = Signing(self.key, me="a", here="proc_a", clock=self.clock)
        return signing.sign(to=to, method=request.method, target=request.target, body=request.body)

    def signer(self, header: str, request: Request) -> str:
        return self.asked.signer(
            header, method=request.method, target=request.target, body=request.body
        )


def refused(pair: Pair, header: str, request: Request) -> str:
    with pytest.raises(Unauthenticated) as refusal:
        pair.signer(header, request)
    assert refusal.value.rule == "member_signature"
    return refusal.value.message


def test_a_request_names_the_node_that_signed_it() -> None:
    pair, request = Pair(), Request()
    assert pair.signer(pair.signed(request), request) == "a"


@pytest.mark.parametrize(
    "other",
    [
        Request(method="GET"),
        Request(target="/api/cluster/calls?x=1"),
        Request(body=b'{"server":"bank"}'),
    ],
)
def test_a_signature_holds_for_no_other_request(other: Request) -> None:
    pair = Pair()
    assert "another request" in refused(pair, pair.signed(Request()), other)


def test_a_signature_is_used_once() -> None:
    pair, request = Pair(), Request()
    header = pair.signed(request)
    pair.signer(header, request)
    assert "used before" in refused(pair, header, request)


def test_a_signature_holds_at_no_other_process_not_even_the_next_of_the_same_node() -> None:
    pair, request = Pair(), Request()
    refused(pair, pair.signed(request, to="proc_c"), request)


def test_who_has_another_master_key_is_nobody() -> None:
    request = Request()
    pair = Pair(key=bytes(32))
    refused(pair, pair.signed(request), request)


@pytest.mark.parametrize("which", ["clock", "there"])
def test_clocks_may_be_a_minute_apart_and_no_more(which: str) -> None:
    pair, request = Pair(), Request()
    pair.there.now_ns = pair.clock.now_ns
    getattr(pair, which).advance(59)
    assert pair.signer(pair.signed(request), request) == "a"
    header = pair.signed(request)
    getattr(pair, which).advance(2)
    late = header if which == "there" else pair.signed(request)
    assert "by the clock of this node" in refused(pair, late, request)


def test_nobody_speaks_in_the_name_of_another_node() -> None:
    pair, request = Pair(), Request()
    _, _, rest = pair.signed(request).partition(";")
    refused(pair, f"c;{rest}", request)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "a",
        "a;b;c",
        "a;b;c;d;e",
        "a;1;c;d;e;f",
        "a;-1;c;d;e",
        "ä;1;c;d;e",
        "a;²;c;d;e",
        "x" * 999,
    ],
)
def test_what_is_no_signature_is_refused(header: str) -> None:
    refused(Pair(), header, replace(Request()))
