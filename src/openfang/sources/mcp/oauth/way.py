"""How the requests of a sign-in reach others: over our own client, each to the host it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx2

from openfang.core.errors import CallTimedOut
from openfang.host.http import FetchFailed, Request
from openfang.safety.urls import AddressRefused, Target, check_address, parse_target
from openfang.sources.mcp.oauth.sign_in import SignInFailed

if TYPE_CHECKING:
    from openfang.host.http import Response
    from openfang.sources.mcp.oauth.sign_in import Wish

_LONGEST_ANSWER: Final = 1_000_000
_SECONDS: Final = 15.0
_SHOWN: Final = 300
_OURS: Final = frozenset({"host", "content-length", "connection", "accept-encoding", "user-agent"})
_DECODED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class Way:
    """Sends what a provider wants sent. Raises `SignInFailed`."""

    def __init__(self, wish: Wish) -> None:
        self._name = wish.name
        self._http = wish.http
        self._private = wish.reached.allow_private

    async def send(self, outgoing: httpx2.Request) -> httpx2.Response:
        """Send a request, and give the answer in the provider's own words."""
        found = await self._fetched(outgoing)
        headers = [(name, text) for name, text in found.headers if name.lower() not in _DECODED]
        return httpx2.Response(found.status, headers=headers, content=found.body, request=outgoing)

    async def _fetched(self, outgoing: httpx2.Request) -> Response:
        url = str(outgoing.url)
        target = self.check(url)
        headers = outgoing.headers.items()
        request = Request(
            url=url,
            allow_hosts=(_place(target),),
            method=outgoing.method,
            headers={name: text for name, text in headers if name.lower() not in _OURS},
            body=outgoing.read() or None,
            limit=_LONGEST_ANSWER,
            timeout=_SECONDS,
            allow_private=self._private,
        )
        try:
            found = await self._http.fetch(request)
        except AddressRefused as refused:
            raise self._refused(url, refused) from refused
        except (FetchFailed, CallTimedOut) as failed:
            raise SignInFailed(
                f"The sign-in to {self._name} failed: {failed.message}",
                way_out="look whether that server runs",
            ) from failed
        if found.truncated:
            raise SignInFailed(f"{url[:_SHOWN]} answered with more than {_LONGEST_ANSWER} bytes.")
        return found

    def check(self, url: str) -> Target:
        """Read an address that a server named; refuse one that no token should travel to."""
        try:
            target = parse_target(url)
            if target.literal:
                check_address(target.host, allow_private=self._private)
        except AddressRefused as refused:
            raise self._refused(url, refused) from refused
        if target.scheme != "https" and not self._private:
            raise SignInFailed(
                f"{url[:_SHOWN]} is not https: who listens could sign in as this node.",
                way_out="set allow_private = true in its entry, if it is a server of yours",
            )
        return target

    def _refused(self, url: str, refused: AddressRefused) -> SignInFailed:
        if refused.rule == "not_granted":
            return SignInFailed(
                f"{url[:_SHOWN]} leads the sign-in to {self._name} on to another host.",
                way_out="ask whoever runs that server",
            )
        return SignInFailed(
            f"{self._name} leads the sign-in to {url[:_SHOWN]}: {refused.message}",
            way_out=refused.way_out or "do not sign in to this server",
        )


def _place(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"
