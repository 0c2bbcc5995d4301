"""The sockets that the server listens on, and the descriptors that its connections will need."""

from __future__ import annotations

import errno
import ipaddress
import resource
import socket
from contextlib import suppress
from typing import Final

from openfang.core.errors import ConfigError, Conflict
from openfang.core.values import dataclass

BACKLOG: Final = 2048
_ATTEMPTS: Final = 8
_UNSENT: Final = 131_072
# Descriptors for the database, logs, children and connections to others.
_RESERVE: Final = 512
_WAY_OUT: Final = "openfang start --listen {}:0, or change OPENFANG_LISTEN or api_listen"
_REASONS: Final = {
    errno.EADDRINUSE: "is in use",
    errno.EADDRNOTAVAIL: "is not an address of this machine",
    errno.EAFNOSUPPORT: "is of a family that this machine does not speak",
    errno.EACCES: "may not be used by this user",
}
_NO_SUCH_FAMILY: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


@dataclass(frozen=True, slots=True)
class Listener:
    """Sockets that listen already: two for `localhost`, else one."""

    sockets: tuple[socket.socket, ...]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, as the system chose them."""
        host, port = self.sockets[0].getsockname()[:2]
        return str(host), int(port)

    def close(self) -> None:
        """Stop listening."""
        for one in self.sockets:
            one.close()


def listen(host: str, port: int) -> Listener:
    """Listen on an address, or on both loopback addresses for `localhost`."""
    if host == "localhost":
        return _localhost(port)
    try:
        return Listener((_socket(_literal(host), port),))
    except OSError as error:
        raise _conflict(host, port, error) from error


def raise_file_limit(connections: int) -> int:
    """Let this process open as many files as that many connections need, or as many as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _RESERVE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def _localhost(port: int) -> Listener:
    """Take the same port of both families: a stranger on the other one would answer for us."""
    for attempt in range(_ATTEMPTS):
        first = _first(port)
        chosen = int(first.getsockname()[1])
        try:
            return Listener((first, _socket("::1", chosen)))
        except OSError as error:
            if error.errno in _NO_SUCH_FAMILY:
                return Listener((first,))
            first.close()
            if port or attempt == _ATTEMPTS - 1:
                raise _conflict("::1", chosen, error) from error
    raise AssertionError


def _first(port: int) -> socket.socket:
    try:
        return _socket("127.0.0.1", port)
    except OSError as error:
        raise _conflict("127.0.0.1", port, error) from error


def _socket(host: str, port: int) -> socket.socket:
    """Listen at once: of two sockets that are merely bound, neither notices the other."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            # One address has one spelling: no IPv4 client arrives as ::ffff:a.b.c.d.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # The kernel would take megabytes for a client that reads nothing, and so hide it.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        made.setblocking(False)  # noqa: FBT003 - the library's signature
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError:
        with suppress(OSError):
            made.close()
        raise
    return made


def _literal(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        raise ConfigError(
            f"{host} is neither an address nor localhost",
            way_out="set api_listen to an address of this machine, such as 127.0.0.1:50051",
        ) from None


def _conflict(host: str, port: int, error: OSError) -> Conflict:
    name = f"[{host}]" if ":" in host else host
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    # No port of an address that is another machine's would do.
    helps = "127.0.0.1" if error.errno in _NO_SUCH_FAMILY else name
    return Conflict(f"{name}:{port} {reason}", way_out=_WAY_OUT.format(helps))
