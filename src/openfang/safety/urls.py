"""Which URLs and addresses may be reached. Pure: who resolves names asks again with each answer.

`parse_target` reads a URL strictly, so that no two readers of it can disagree on the host.
`check_address` judges one address that is about to be dialled, and any IPv4 address inside it,
by a table of our own: `ipaddress.is_global` differs between patch releases of Python.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from openfang.core.errors import OpenFangError
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Address: TypeAlias = IPv4Address | IPv6Address


class AddressRefused(OpenFangError):  # noqa: N818 - it reads as what it is
    """A URL or an address that must not be reached. `rule` is a stable word for the reason."""

    code = "address_refused"

    def __init__(self, message: str, *, rule: str, way_out: str = "") -> None:
        super().__init__(message, way_out=way_out)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Range:
    """One refused range. A private one opens with `allow_private`, the others never do."""

    network: IPv4Network | IPv6Network
    rule: str
    private: bool = False


def _ranges(rule: str, *networks: str, private: bool = False) -> tuple[Range, ...]:
    return tuple(Range(ip_network(network), rule, private) for network in networks)


# The first match decides. Metadata comes first: some of it lies in ranges that open.
REFUSED: Final[tuple[Range, ...]] = (
    *_ranges("metadata", "169.254.169.254/32", "169.254.170.0/24", "169.254.42.42/32"),
    *_ranges("metadata", "169.254.0.23/32", "100.100.100.200/32", "168.63.129.16/32"),
    *_ranges("metadata", "192.0.0.192/32", "fd00:ec2::/32", "fd00:42::42/128", "fd20:ce::254/128"),
    *_ranges("metadata", "fd00:c1::a9fe:a9fe/128", "fd00:a9fe:a9fe::/48", "fe80::a9fe:a9fe/128"),
    *_ranges("loopback", "127.0.0.0/8", "::1/128", private=True),
    *_ranges("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", private=True),
    *_ranges("shared", "100.64.0.0/10", private=True),
    *_ranges("unique_local", "fc00::/7", private=True),
    *_ranges("link_local", "169.254.0.0/16", "fe80::/10"),
    *_ranges("unspecified", "0.0.0.0/8", "::/128"),
    *_ranges("broadcast", "255.255.255.255/32"),
    *_ranges("multicast", "224.0.0.0/4", "ff00::/8"),
    *_ranges("benchmark", "198.18.0.0/15", "2001:2::/48"),
    *_ranges("documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    *_ranges("documentation", "2001:db8::/32", "3fff::/20"),
    *_ranges("relay", "192.88.99.0/24", "2002::/16", "2001::/32"),
    *_ranges("translation", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96"),
    *_ranges("reserved", "192.0.0.0/24", "240.0.0.0/4", "2001::/23"),
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
# Outside of these no address of the Internet exists; the last two stand for an IPv4 host.
_ORDINARY = (IPv6Network("2000::/3"), _MAPPED, _NAT64)
_OUTSIDE = Range(IPv6Network("::/0"), "reserved")


def _last(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _after_prefix_16(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)


def _after_prefix_32(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) >> 64 & 0xFFFFFFFF)


def _around_bit_64(address: IPv6Address) -> IPv4Address:
    """RFC 6052 with a prefix of 48 bits: eight bits in the middle are not part of it."""
    number = int(address)
    return IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)


def _last_inverted(address: IPv6Address) -> IPv4Address:
    return IPv4Address(~int(address) & 0xFFFFFFFF)


_EMBEDDINGS: Final[tuple[tuple[IPv6Network, Callable[[IPv6Address], IPv4Address]], ...]] = (
    (_MAPPED, _last),
    (_NAT64, _last),
    (IPv6Network("::/96"), _last),
    (IPv6Network("::ffff:0:0:0/96"), _last),
    (IPv6Network("64:ff9b:1::/48"), _last),
    (IPv6Network("64:ff9b:1::/48"), _around_bit_64),
    (IPv6Network("2002::/16"), _after_prefix_16),
    (IPv6Network("2001::/32"), _after_prefix_32),
    (IPv6Network("2001::/32"), _last_inverted),
)


def _embedded(address: Address) -> Iterator[IPv4Address]:
    """Every IPv4 address that an IPv6 address can stand for; `::` and `::1` stand for none."""
    if isinstance(address, IPv6Address) and int(address) > 1:
        for network, decode in _EMBEDDINGS:
            if address in network:
                yield decode(address)


def _refusing(address: Address) -> Range | None:
    for entry in REFUSED:
        if entry.network.version == address.version and address in entry.network:
            return entry
    if isinstance(address, IPv4Address) or any(address in network for network in _ORDINARY):
        return None
    return _OUTSIDE


def check_address(address: str, *, allow_private: bool, host: str = "") -> None:
    """Refuse an address of a special range; `host` is the name it was found under."""
    shown = f"{host} ({address})" if host and host != address else address
    try:
        parsed = ip_address(address)
    except ValueError:
        raise AddressRefused(f"{shown} is not an address", rule="malformed") from None
    if "%" in address:
        raise AddressRefused(f"{shown} names a network zone", rule="zone")
    for candidate in (*_embedded(parsed), parsed):
        entry = _refusing(candidate)
        if entry and not (entry.private and allow_private):
            raise _address_refused(shown, candidate, entry)


def _address_refused(shown: str, judged: Address, entry: Range) -> AddressRefused:
    inside = "" if str(judged) in shown else f", which stands for {judged},"
    return AddressRefused(
        f"{shown}{inside} is in the refused range {entry.network} ({entry.rule})",
        rule=entry.rule,
        way_out="set allow_private = true where this address is configured"
        if entry.private
        else "",
    )


_URL = re.compile(r"\A(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?\Z", re.IGNORECASE)
_AUTHORITY = re.compile(r"\A(\[[0-9A-Fa-f:.]*\]|[^:\[\]@%]+)(?::([0-9]{1,5}))?\Z")
_LABEL = re.compile(r"\A(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
_NUMBER = re.compile(r"\A(?:[0-9]+|0x[0-9a-f]*)\Z")
_UNSAFE = re.compile(
    r"[\x00-\x20\x7f-\xa0\\\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
_KEPT = "%/?:@!$&'()*+,;=-._~[]"
_PORTS = {"http": 80, "https": 443}
_LONGEST_URL = 8192
_LONGEST_NAME = 253
_HIGHEST_PORT = 65535
METADATA_HOSTS: Final = (
    "metadata",
    "metadata.goog*",
    "*.metadata.goog*",
    "metadata.aws.*",
    "metadata.ec2.*",
    "metadata.azure.*",
    "metadata.tencentyun.*",
    "metadata.internal",
    "instance-data",
    "instance-data.*",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL as it will be asked for: one host, one port, one path; the fragment stays here."""

    scheme: str
    host: str
    port: int
    path_and_query: str
    literal: bool

    @property
    def authority(self) -> str:
        """Host and port as a URL writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What two URLs share when one may see what was meant for the other."""
        return self.scheme, self.host, self.port

    @property
    def url(self) -> str:
        """The canonical form."""
        return f"{self.scheme}://{self.authority}{self.path_and_query}"


def parse_target(url: str) -> Target:
    """Read an http(s) URL strictly; refuse whatever two readers could read differently."""
    _check_text(url)
    match = _URL.match(url)
    if match is None:
        raise AddressRefused(f"{url!r} is not an http or https URL", rule="scheme")
    scheme = match[1].lower()
    host, port = _split_authority(match[2], url)
    literal, host = _check_host(host)
    path_and_query = quote((match[3] or "/") + (match[4] or ""), safe=_KEPT)
    return Target(
        scheme=scheme,
        host=host,
        port=_PORTS[scheme] if port is None else port,
        path_and_query=path_and_query,
        literal=literal,
    )


def follow_reference(base: Target, reference: str) -> Target:
    """Read what a redirect points to. Checked before it is joined: joining drops characters."""
    _check_text(reference)
    return parse_target(urljoin(base.url, reference))


def same_party(old: Target, new: Target) -> bool:
    """Whether the origin is the same, or the same host asks for TLS on the usual ports."""
    upgraded = (old.scheme, old.port, new.scheme, new.port) == ("http", 80, "https", 443)
    return old.origin == new.origin or (upgraded and old.host == new.host)


def host_granted(target: Target, patterns: Iterable[str]) -> bool:
    """Whether a network grant names the host: `*`, `example.com`, `*.example.com`, `host:port`."""
    bracketed = f"[{target.host}]" if ":" in target.host else target.host
    names = (target.host, bracketed, f"{bracketed}:{target.port}")
    return any(_glob(pattern.lower()).match(name) for pattern in patterns for name in names)


def _glob(pattern: str) -> re.Pattern[str]:
    """Only `*` is special: brackets belong to IPv6 addresses."""
    return re.compile(rf"\A{'.*'.join(map(re.escape, pattern.split('*')))}\Z", re.DOTALL)


def _check_text(url: str) -> None:
    if len(url) > _LONGEST_URL:
        raise AddressRefused(f"A URL of {len(url)} characters is too long", rule="length")
    unsafe = _UNSAFE.search(url)
    if unsafe or not _encodable(url):
        character = ascii(unsafe[0]) if unsafe else "a lone surrogate"
        raise AddressRefused(f"{url!a} contains {character}", rule="character")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split_authority(authority: str, url: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise AddressRefused(
            f"{url!a} carries user information in front of its host",
            rule="user_info",
            way_out="send credentials in a header",
        )
    match = _AUTHORITY.match(authority)
    if match is None:
        raise AddressRefused(f"{authority!a} is not a host with an optional port", rule="host")
    port = int(match[2]) if match[2] else None
    if port is not None and not 1 <= port <= _HIGHEST_PORT:
        raise AddressRefused(f"Port {port} of {url!a} is not a port", rule="port")
    return match[1].lower(), port


def _check_host(host: str) -> tuple[bool, str]:
    """Tell whether the host is an address, and give its canonical form."""
    if host.startswith("["):
        return True, _bracketed(host)
    labels = host.split(".")
    if _NUMBER.match(labels[-1]):
        return True, _dotted(host)
    if len(host) > _LONGEST_NAME or not all(map(_LABEL.match, labels)):
        raise AddressRefused(
            f"{host!a} is not a host name in plain letters",
            rule="host",
            way_out="write an international name in its xn-- form, without a dot at the end",
        )
    if any(fnmatchcase(host, pattern) for pattern in METADATA_HOSTS):
        raise AddressRefused(f"{host} is the name of a metadata service", rule="metadata")
    return False, host


def _bracketed(host: str) -> str:
    try:
        return str(IPv6Address(host[1:-1]))
    except ValueError:
        raise AddressRefused(f"{host} is not an IPv6 address", rule="host") from None


def _dotted(host: str) -> str:
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise AddressRefused(
            f"{host} is a number form that programs read differently",
            rule="number_form",
            way_out="write an IPv4 address as four decimal numbers",
        ) from None


def without_user(url: str) -> str:
    """The address that others use: nothing of who signed in, and no slash at its end."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
