"""From where a request may come: Host against rebinding, Origin against foreign pages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openfang.core.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HTTP_PORT = 80
_ONCE = frozenset(
    {
        b"host",
        b"authorization",
        b"x-api-key",
        b"x-admin-token",
        b"origin",
        b"content-type",
        b"content-encoding",
        b"traceparent",
        b"x-openstarry-trace-id",
        b"openfang-chain",
        b"last-event-id",
        b"prefer",
        b"x-openfang-session",
    }
)


def one_of_each(headers: Sequence[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    """Return the headers by name; one that must not be doubled is refused if it is."""
    found = dict(headers)
    if len(found) == len(headers):
        return found
    names = [name for name, _ in headers]
    doubled = next((name for name in names if name in _ONCE and names.count(name) > 1), None)
    if doubled is not None:
        raise Rejected(
            f"The header {doubled.decode()} is there more than once.",
            status=400,
            rule="doubled_header",
            way_out="send it once",
        )
    return found


def check_host(host: bytes | None, known: frozenset[str], address: str) -> None:
    """Refuse a name that is not the node's: a page may have pointed its own name at us.

    The address that the connection was made to is no name that anybody could point elsewhere.
    """
    if host is None:
        raise Rejected(
            "The request names no Host.", status=400, rule="host", way_out="send a Host header"
        )
    name = _place(host.decode("latin-1").lower())[0]
    if name not in known and name != address:
        raise Rejected(
            f"{host.decode(errors='replace')[:200]!r} is no name of this node.",
            status=421,
            rule="host",
            way_out="use the address in daemon.json, or set public_url",
        )


@lru_cache(maxsize=64)
def _place(text: str) -> tuple[str | None, int | None]:
    """Host and port of what must be these alone; no host if it is anything else."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        return None, None
    alone = parts.netloc == text and "@" not in text and text.isascii()
    return (parts.hostname, port) if alone else (None, None)


def check_origin(origin: bytes, port: int, known: frozenset[str], public: str | None) -> None:
    """Refuse a page of another place: ours come from the node's own names, on its own port."""
    if not _is_ours(origin, port, known, public):
        raise Rejected(
            f"Pages of {origin.decode(errors='replace')[:200]} may not use this node.",
            status=403,
            rule="origin",
            way_out="call it from a program, or set public_url to the page's own address",
        )


def _is_ours(origin: bytes, port: int, known: frozenset[str], public: str | None) -> bool:
    text = origin.decode("latin-1").lower()
    if public is not None and text == public:
        return True
    scheme, _, netloc = text.partition("://")
    host, own_port = _place(netloc)
    return scheme == "http" and host in known and (own_port or _HTTP_PORT) == port
