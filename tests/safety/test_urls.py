"""The addresses and URLs that must not be reached, and those that must."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfang.safety.urls import (
    AddressRefused,
    Target,
    check_address,
    follow_reference,
    host_granted,
    parse_target,
    same_party,
    without_user,
)

pytestmark = pytest.mark.requirement("C3.9")

VECTORS = (
    # number forms of 127.0.0.1 and of nothing
    "http://2130706433/",
    "http://0x7f000001/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0177.0.0.1/",
    "http://0x7f.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    # loopback, also dressed up
    "http://127.0.0.1/",
    "http://127.255.255.254/",
    "http://127.0.0.1./",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::127.0.0.1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::1]/",
    # private and special ranges
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://[fd12:3456::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://224.0.0.1/",
    "http://[ff02::1]/",
    "http://255.255.255.255/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    # metadata
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://metadata.google.internal/computeMetadata/v1/",
    # letters that look like others, and hosts that look like others
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://example.com@127.0.0.1/",
    "http://a:b@169.254.169.254/",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\.example.com/",
)

MORE = (
    "http://127.0.0.1?x=1",
    "http://127.0.0.1#x",
    "http://127.0.0.1#@example.com/",
    "http://instance-data/latest/",
    "http://METADATA.google.internal/",
    "http://metadata.google/",
    "http://metadata.goog/",
    "http://metadata.aws.internal/",
    "http://metadata/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "//example.com/",
    "example.com",
    "http:/example.com",
    "http://",
    "http:///x",
    "http://example.com:0/",
    "http://example.com:65536/",
    "http://example.com:/",
    "http://example.com:80:80/",
    "http://example.com:8a/",
    "http://exa mple.com/",
    "http://example.com/\r\nX: y",
    "http://example.com/\x00",
    "http://example.com/\u2028",
    "http://%31%32%37.0.0.1/",
    "http://example..com/",
    "http://.example.com/",
    "http://-a.example.com/",
    "http://example.com./",
    "http://b\u00fccher.example/",
    "http://[::1",
    "http://::1/",
    "http://[127.0.0.1]/",
    "http://[v1.fe80::a]/",
    "http://1.2.3.4.5/",
    "http://1.2.3.256/",
    "http://example.0x1/",
    "http://" + "a" * 64 + ".example/",
    "http://" + "a." * 127 + "example/",
    "http://example.com/" + "x" * 9000,
    "http://example.com/\ud800",
)


def reach(url: str, *, allow_private: bool = False) -> Target:
    """Do what a client does with a URL whose host is an address."""
    target = parse_target(url)
    if target.literal:
        check_address(target.host, allow_private=allow_private)
    return target


def test_the_corpus_is_whole() -> None:
    assert len(set(VECTORS)) == 46


@pytest.mark.parametrize("url", VECTORS + MORE)
def test_an_address_that_must_not_be_reached_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        reach(url)
    assert refused.value.code == "address_refused"
    assert refused.value.rule


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://169.254.170.2/",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[fd20:ce::254]/",
        "http://[fd00:c1::a9fe:a9fe]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://169.254.1.1/",
        "http://[fe80::1]/",
        "http://224.0.0.1/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://255.255.255.255/",
        "http://240.0.0.1/",
        "http://[2002:7f00:1::]/",
        "http://[64:ff9b:1::127.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://[100::1]/",
        "http://[fec0::1]/",
        "http://[4000::1]/",
    ],
)
def test_allow_private_never_opens_metadata_and_special_ranges(url: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        reach(url, allow_private=True)
    assert refused.value.way_out == ""


@pytest.mark.parametrize(
    "address",
    [
        "::a9fe:a9fe",
        "::ffff:a9fe:a9fe",
        "::ffff:0:a9fe:a9fe",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00:808:808",
        "2002:a9fe:a9fe::",
        "2001:0:a9fe:a9fe::",
        "2001:0:808:808::5601:5601",
    ],
)
def test_what_an_address_of_a_tunnel_stands_for_is_known(address: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        check_address(address, allow_private=True)
    assert refused.value.rule == "metadata"


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("169.254.169.254", "metadata"),
        ("169.254.42.42", "metadata"),
        ("169.254.0.23", "metadata"),
        ("fd00:42::42", "metadata"),
        ("fd00:a9fe:a9fe::1", "metadata"),
        ("fe80::a9fe:a9fe", "metadata"),
        ("127.1.2.3", "loopback"),
        ("172.16.0.1", "private"),
        ("100.64.0.1", "shared"),
        ("fc00::1", "unique_local"),
        ("169.254.1.1", "link_local"),
        ("febf::1", "link_local"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("255.255.255.255", "broadcast"),
        ("239.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("198.19.0.1", "benchmark"),
        ("2001:2::1", "benchmark"),
        ("192.0.2.1", "documentation"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("192.88.99.1", "relay"),
        ("192.0.0.1", "reserved"),
        ("240.0.0.1", "reserved"),
        ("2001:1ff::1", "reserved"),
        ("4000::1", "reserved"),
        ("1.2.3.4%1", "malformed"),
        ("fe80::1%eth0", "zone"),
    ],
)
def test_a_refusal_names_the_range_that_it_is_for(address: str, rule: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        check_address(address, allow_private=False)
    assert refused.value.rule == rule


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://me@example.com/", "user_info"),
        ("http://example.com:x/", "host"),
        ("http://example.com:0/", "port"),
        ("http://example.com:65536/", "port"),
        ("http://[12345::]/", "host"),
        ("http://-a.com/", "host"),
        ("http://a.com/\\b", "character"),
        ("http://metadata/", "metadata"),
        ("http://metadata.google.internal/", "metadata"),
        ("http://eu.metadata.google.internal/", "metadata"),
        ("http://metadata.aws.internal/", "metadata"),
        ("http://metadata.ec2.internal/", "metadata"),
        ("http://metadata.azure.internal/", "metadata"),
        ("http://metadata.tencentyun.com/", "metadata"),
        ("http://metadata.internal/", "metadata"),
        ("http://instance-data/", "metadata"),
        ("http://instance-data.ec2.internal/", "metadata"),
        ("http://0x7f.1/", "number_form"),
    ],
)
def test_a_refusal_names_what_is_wrong_with_a_url(url: str, rule: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        parse_target(url)
    assert refused.value.rule == rule


def test_the_first_and_the_last_port_are_ports() -> None:
    assert [parse_target(f"http://a.com:{port}/").port for port in (1, 65535)] == [1, 65535]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "10.1.2.3", "172.31.0.1", "192.168.0.9", "100.64.0.1", "fd12::1"],
)
def test_allow_private_opens_loopback_and_private_ranges(address: str) -> None:
    check_address(address, allow_private=True)
    with pytest.raises(AddressRefused) as refused:
        check_address(address, allow_private=False)
    assert "allow_private = true" in refused.value.way_out


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "2606:2800:220:1::1",
        "::ffff:93.184.215.14",
        "64:ff9b::5db8:d70e",
    ],
)
def test_ordinary_addresses_pass(address: str) -> None:
    check_address(address, allow_private=False)


def test_a_refusal_names_the_host_the_address_and_what_it_stands_for() -> None:
    with pytest.raises(AddressRefused) as refused:
        check_address("64:ff9b::a00:1", allow_private=False, host="intranet.example")
    assert refused.value.rule == "private"
    for word in ("intranet.example", "64:ff9b::a00:1", "10.0.0.1", "10.0.0.0/8"):
        assert word in refused.value.message


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "fe80::1%eth0", "fd12::1%1", "1.2.3"])
def test_what_is_not_a_plain_address_is_refused_even_when_private_is_open(text: str) -> None:
    with pytest.raises(AddressRefused):
        check_address(text, allow_private=True)


def test_a_url_is_read_into_its_canonical_form() -> None:
    assert parse_target("HTTPS://Example.COM:8443/K\u00f6ln?q=a b".replace(" ", "%20")) == Target(
        scheme="https",
        host="example.com",
        port=8443,
        path_and_query="/K%C3%B6ln?q=a%20b",
        literal=False,
    )


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("http://example.com", "http://example.com/"),
        ("http://example.com?x=1", "http://example.com/?x=1"),
        ("http://example.com#there", "http://example.com/"),
        ("http://example.com?x#@127.0.0.1/", "http://example.com/?x"),
        ("https://example.com:443/a#b", "https://example.com/a"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("http://my_service:8080/mcp", "http://my_service:8080/mcp"),
        ("http://[2606:2800:0220:0001:0:0:0:1]:81/", "http://[2606:2800:220:1::1]:81/"),
        ("http://93.184.215.14/%2e%2e?a=@b", "http://93.184.215.14/%2e%2e?a=@b"),
    ],
)
def test_what_follows_the_host_does_not_change_it(url: str, canonical: str) -> None:
    target = parse_target(url)
    assert target.url == canonical
    assert parse_target(canonical) == target


def test_a_redirect_is_read_against_where_it_came_from() -> None:
    base = parse_target("https://example.com/a/b?c")
    assert follow_reference(base, "../d").url == "https://example.com/d"
    assert follow_reference(base, "//other.example/x").url == "https://other.example/x"
    assert follow_reference(base, "http://10.0.0.1/").host == "10.0.0.1"
    for reference in ("/\\evil", "\thttp://a/", "file:///etc/passwd", "http://a@b/", "//metadata/"):
        with pytest.raises(AddressRefused):
            follow_reference(base, reference)


@pytest.mark.parametrize(
    ("patterns", "granted"),
    [
        ((), False),
        (("*",), True),
        (("api.example.com",), True),
        (("API.example.com",), True),
        (("api.example.com:8443",), True),
        (("api.example.com:443",), False),
        (("*.example.com",), True),
        (("*.example.com:*",), True),
        (("example.com",), False),
        (("*.example",), False),
        (("api?example.com",), False),
        (("[a]pi.example.com",), False),
    ],
)
def test_a_network_grant_names_hosts(patterns: tuple[str, ...], granted: bool) -> None:  # noqa: FBT001 - a table
    target = parse_target("https://api.example.com:8443/")
    assert host_granted(target, patterns) is granted


def test_a_grant_can_name_an_ipv6_address() -> None:
    target = parse_target("http://[::1]:8080/")
    assert host_granted(target, ["[::1]:8080"])
    assert host_granted(target, ["::1"])
    assert not host_granted(target, ["[::2]"])


@settings(max_examples=200)
@given(st.ip_addresses(v=4), st.booleans())
def test_every_dress_of_an_ipv4_address_is_judged_like_the_address(
    address: ipaddress.IPv4Address,
    allow_private: bool,  # noqa: FBT001 - drawn
) -> None:
    mapped = str(ipaddress.IPv6Address((0xFFFF << 32) | int(address)))
    translated = str(ipaddress.IPv6Address((0x64FF9B << 96) | int(address)))
    expected = _refusal(str(address), allow_private=allow_private)
    assert _refusal(mapped, allow_private=allow_private) == expected
    assert _refusal(translated, allow_private=allow_private) == expected


@settings(max_examples=200)
@given(st.ip_addresses())
def test_our_table_refuses_whatever_python_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if address.is_private or address.is_multicast or address.is_reserved:
        assert _refusal(str(address), allow_private=False) or _stands_for_ipv4(address)


@settings(max_examples=300)
@given(st.text(max_size=40))
def test_reading_any_text_gives_a_target_or_a_refusal(text: str) -> None:
    for url in (text, f"http://{text}", f"http://example.com{text}"):
        try:
            target = parse_target(url)
        except AddressRefused:
            continue
        assert target.url.isascii()
        assert parse_target(target.url) == target


def test_tls_on_the_same_host_is_the_same_party_and_nothing_else_is() -> None:
    old = parse_target("http://example.com/a")
    others = {
        "http://example.com/b": True,
        "https://example.com/": True,
        "https://example.com:8443/": False,
        "http://example.com:8080/": False,
        "https://www.example.com/": False,
    }
    assert {url: same_party(old, parse_target(url)) for url in others} == others
    assert not same_party(parse_target("https://example.com/"), old)


def _refusal(address: str, *, allow_private: bool) -> str | None:
    try:
        check_address(address, allow_private=allow_private)
    except AddressRefused as refused:
        return refused.rule
    return None


def _stands_for_ipv4(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    networks = ("64:ff9b::/96", "::ffff:0:0/96")
    return any(address in ipaddress.ip_network(network) for network in networks)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://example.com/mcp/", "https://example.com/mcp"),
        ("https://me:secret@example.com:8443/a?key=x#y", "https://example.com:8443/a"),
        ("https://me@home:secret@example.com", "https://example.com"),
        ("https://[2001:db8::1]/", "https://[2001:db8::1]"),
    ],
)
def test_an_address_is_told_to_others_without_who_signed_in(url: str, plain: str) -> None:
    assert without_user(url) == plain
