"""Who is a node of ours, who comes in as whom, and which server or peer is which of them."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64decode
from dataclasses import field
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from openfang.config.servers import HttpTransport
from openfang.core.ids import Kind
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from openfang.config.models import Config
    from openfang.config.peers import Node

_PORTS: Final = {"http": 80, "https": 443}
_URL_SAFE: Final = frozenset("-_")


def key_bytes(written: str) -> bytes:
    """Read a public key as configurations and key sets write it."""
    padded = written.rstrip("=") + "="
    return urlsafe_b64decode(padded) if _URL_SAFE & set(written) else b64decode(padded)


def fingerprint(key: bytes) -> str:
    """Name a key by what nobody else's has."""
    return sha256(key).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNode:
    """One of them. `id` is the fingerprint of its key, `who` the caller that it comes in as."""

    name: str
    url: str
    id: str
    key: bytes
    who: str = ""
    allow_private: bool = False

    def public_key(self) -> Ed25519PublicKey:
        """Give what its signatures are checked with."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 - where nodes are
            Ed25519PublicKey,
        )

        return Ed25519PublicKey.from_public_bytes(self.key)

    def serves(self, url: str) -> bool:
        """Whether an address is one of this node's."""
        own, other = _place(self.url), _place(url)
        below = other[1].startswith(f"{own[1]}/") or other[1] == own[1]
        return own[0] == other[0] and below


def _place(url: str) -> tuple[tuple[str, str, int | None], str]:
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    origin = scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(scheme)
    return origin, parts.path.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Everybody who is configured, by all that they are found by.

    `reached` are nodes by the source that their tools are of, `comes` callers by the same; `peers`
    are the names of all who come in, by caller.
    """

    nodes: tuple[KnownNode, ...] = ()
    by_id: dict[str, KnownNode] = field(default_factory=dict[str, KnownNode])
    reached: dict[tuple[Kind, str], KnownNode] = field(
        default_factory=dict[tuple[Kind, str], KnownNode]
    )
    comes: dict[tuple[Kind, str], str] = field(default_factory=dict[tuple[Kind, str], str])
    peers: dict[str, str] = field(default_factory=dict[str, str])

    def at(self, url: str) -> KnownNode | None:
        """Find the node whose address it is."""
        return next((one for one in self.nodes if one.serves(url)), None)


def book_of(config: Config) -> Book:
    """Write down whom a configuration names."""
    nodes = tuple(map(_known, config.nodes))
    book = Book(nodes=nodes, by_id={one.id: one for one in nodes})
    for node in nodes:
        if node.who:
            book.peers[node.who] = node.name
    for place, url, comes_as in _sources(config):
        node = book.at(url) if url else None
        if node is not None:
            book.reached[place] = node
        who = _caller(comes_as) or (node.who if node else "")
        if who:
            book.comes[place] = who
            book.peers.setdefault(who, place[1])
    return book


def _known(node: Node) -> KnownNode:
    key = key_bytes(node.public_key)
    return KnownNode(
        name=node.name,
        url=node.url,
        id=fingerprint(key),
        key=key,
        who=_caller(node.comes_as),
        allow_private=node.allow_private,
    )


def _sources(config: Config) -> Iterator[tuple[tuple[Kind, str], str, str | None]]:
    for server in config.mcp_servers:
        reached = server.transport
        url = reached.url if isinstance(reached, HttpTransport) else ""
        yield (Kind.MCP, server.name), url, server.comes_as
    for peer in config.a2a.external_agents:
        yield (Kind.A2A, peer.name), peer.url, peer.comes_as


def _caller(key: str | None) -> str:
    return f"key:{key}" if key else ""
