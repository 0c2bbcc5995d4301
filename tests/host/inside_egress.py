"""Tests of the egress that `test_egress.py` runs where there is no network but the loopback.

There, a public address, a private one and the metadata address are really on the loopback device:
what must be reached answers, what must not be reached would answer too, and would be seen.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.host.inside_namespace import METADATA, PRIVATE, PUBLIC, PUBLIC6
from tests.host.proxied import Names, get, hello, opened, serving

from openfang.host.egress import Closed, EgressRules, Opened, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from tests.host.proxied import Way

pytestmark = pytest.mark.requirement("C3.9", "C16.2")

OPEN = EgressRules(allow_private=True)


@pytest.fixture(autouse=True)
def _only_loopback() -> None:
    """Never run where a packet could leave the machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "egress.sock"


async def refused(way: Way, host: str, port: int) -> set[str]:
    """Ask for a host in both forms, and give the rules that refused it."""
    way.visits.clear()
    with anyio.fail_after(30):
        assert await way.tunnel(host, port) in {400, 403}
        assert await way.status(get(f"http://{host}:{port}/")) in {400, 403}
    rules = [visit.rule for visit in way.visits if isinstance(visit, Refused)]
    assert len(rules) == 2
    assert not any(isinstance(visit, Opened) for visit in way.visits)
    return set(rules)


async def test_a_public_host_is_reached_by_name_and_by_address(path: Path) -> None:
    names = Names({"example.com": [[PUBLIC]]})
    async with serving(hello, PUBLIC) as server, opened(path, names) as way:
        for host in ("example.com", PUBLIC):
            assert (await way.say(get(server.url(host)))).endswith(b"hello")
            assert await way.tunnel(host, server.port) == 200
        assert server.visitors == 4
    assert names.asked == {"example.com": 2}
    opens = [visit for visit in way.visits if isinstance(visit, Opened)]
    assert {(visit.host, visit.address) for visit in opens} == {
        ("example.com", PUBLIC),
        (PUBLIC, PUBLIC),
    }


async def test_an_address_of_the_other_family_is_reached(path: Path) -> None:
    async with serving(hello, PUBLIC6) as server, opened(path) as way:
        assert await way.tunnel(f"[{PUBLIC6}]", server.port) == 200


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("127.0.0.1", "loopback"),
        (PRIVATE, "private"),
        (METADATA, "metadata"),
        ("::1", "loopback"),
        (f"::ffff:{METADATA}", "metadata"),
    ],
)
async def test_a_special_address_is_refused_by_name_and_as_itself(
    path: Path, address: str, rule: str
) -> None:
    names = Names({"inner.example": [[address]], "mixed.example": [[PUBLIC, address]]})
    local = "::" if ":" in address else address
    async with serving(hello, local) as server, opened(path, names) as way:
        shown = f"[{address}]" if ":" in address else address
        for host in (shown, "inner.example", "mixed.example"):
            assert await refused(way, host, server.port) == {rule}
        assert server.visitors == 0


async def test_the_name_of_a_metadata_service_is_refused_before_anybody_is_asked(
    path: Path,
) -> None:
    names = Names({host: [[PUBLIC]] for host in ("metadata.google.internal", "instance-data")})
    async with serving(hello, PUBLIC) as server, opened(path, names, rules=OPEN) as way:
        for host in names.answers:
            assert await refused(way, host, server.port) == {"metadata"}
        assert (server.visitors, names.asked) == (0, {})


async def test_a_second_answer_of_the_resolver_is_judged_like_the_first(path: Path) -> None:
    names = Names({"rebinding.example": [[PUBLIC], ["127.0.0.1"], [METADATA]]})
    async with serving(hello, PUBLIC) as server, opened(path, names) as way:
        assert await way.tunnel("rebinding.example", server.port) == 200
        assert await way.tunnel("rebinding.example", server.port) == 403
        assert await way.tunnel("rebinding.example", server.port) == 403
        assert server.visitors == 1


async def test_private_addresses_open_by_a_switch_and_metadata_never(path: Path) -> None:
    names = Names({"inner.example": [[PRIVATE]], "meta.example": [[METADATA]]})
    async with (
        serving(hello, PRIVATE) as inner,
        serving(hello, METADATA) as metadata,
        opened(path, names, rules=OPEN) as way,
    ):
        for host in ("inner.example", PRIVATE):
            assert await way.tunnel(host, inner.port) == 200
        for host in ("meta.example", METADATA, f"[::ffff:{METADATA}]"):
            assert await refused(way, host, metadata.port) == {"metadata"}
        assert metadata.visitors == 0


@pytest.mark.parametrize("answers", [None, [], ["not-an-address"], ["fe80::1%lo"]])
async def test_a_name_that_does_not_resolve_to_addresses_is_refused(
    path: Path, answers: list[str] | None
) -> None:
    names = Names({} if answers is None else {"example.com": [answers]})
    async with opened(path, names, rules=OPEN) as way:
        assert await refused(way, "example.com", 80) <= {"unresolved", "malformed", "zone"}


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost.", "a@b", "ex%61mple"]
)
async def test_a_host_that_two_readers_read_differently_is_refused(path: Path, host: str) -> None:
    names = Names({host: [[PUBLIC]]})
    async with serving(hello, PUBLIC) as server, opened(path, names, rules=OPEN) as way:
        assert await refused(way, host, server.port)
        assert server.visitors == 0
        assert not names.asked


async def test_only_hosts_of_the_list_are_reached(path: Path) -> None:
    names = Names({host: [[PUBLIC]] for host in ("a.example", "b.other", "a.example.evil")})
    rules = EgressRules(allow_hosts=("*.example", "b.other:1"))
    async with serving(hello, PUBLIC) as server, opened(path, names, rules=rules) as way:
        assert await way.tunnel("a.example", server.port) == 200
        for host in ("b.other", "a.example.evil", PUBLIC):
            assert await refused(way, host, server.port) == {"not_granted"}
        assert names.asked == {"a.example": 1}


@pytest.mark.parametrize("port", ["0", "65536", "99999", "-1", "http", ""])
async def test_a_port_is_a_port(path: Path, port: str) -> None:
    async with opened(path, Names({"a.example": [[PUBLIC]]})) as way:
        answer = await way.say(f"CONNECT a.example:{port} HTTP/1.1\r\nHost: a\r\n\r\n")
        assert int(answer.split()[1]) in {400, 403}
        assert [type(visit) for visit in way.visits] == [Refused]


async def test_the_host_header_cannot_choose_another_server(path: Path) -> None:
    names = Names({"a.example": [[PUBLIC]]})
    asked = "GET http://a.example:{port}/ HTTP/1.1\r\nHost: b.example\r\n\r\n"
    async with serving(hello, PUBLIC) as server, opened(path, names) as way:
        assert await way.status(asked.replace("{port}", str(server.port))) == 200
    assert {visit.host for visit in way.visits if isinstance(visit, Closed)} == {"a.example"}
