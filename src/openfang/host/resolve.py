"""From a name to a socket: each answer of the resolver is checked, and each address dialled."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from aiohttp.abc import AbstractResolver, ResolveResult

from openfang.core.values import dataclass
from openfang.safety.urls import AddressRefused, check_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.host.names import Resolve


@dataclass(frozen=True, slots=True)
class CheckedResolver(AbstractResolver):
    """Resolves for one policy; an answer that may not be dialled refuses the whole name."""

    ask: Resolve
    allow_private: bool

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Give the addresses of a name, if all of them may be dialled."""
        addresses = await self._answers(host, port)
        for address in addresses:
            check_address(address, allow_private=self.allow_private, host=host)
        return [_result(host, port, address) for address in addresses if _fits(address, family)]

    async def _answers(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self.ask(host, port)
        except OSError as error:
            raise AddressRefused(f"{host} does not resolve: {error}", rule="unresolved") from error
        if not addresses:
            raise AddressRefused(f"{host} resolves to nothing", rule="unresolved")
        return list(dict.fromkeys(addresses))

    async def close(self) -> None:
        """Nothing is held."""


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _fits(address: str, family: socket.AddressFamily) -> bool:
    return family in {socket.AF_UNSPEC, _family(address)}


def _result(host: str, port: int, address: str) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=_family(address),
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


@dataclass(frozen=True, slots=True)
class Dial:
    """Opens every socket, and so sees every address: what nobody checked is refused here."""

    allow_private: bool

    def __call__(self, info: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """Open a socket for an address that may be dialled."""
        family, kind, protocol, _, address = info
        check_address(str(address[0]), allow_private=self.allow_private)
        return socket.socket(family, kind, protocol)
