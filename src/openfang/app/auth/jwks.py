"""Asks an issuer for the keys that it signs with, by the guarded HTTP client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import anyio
import orjson

from openfang.app.auth.tokens import Terms, Verifier, read_keys
from openfang.core.errors import CallTimedOut, OpenFangError, SourceFailed
from openfang.host.http import HttpClient, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.config.node import Issuer

_WHOLE_SECONDS: Final = 10.0
_SECONDS: Final = 5.0
_LARGEST: Final = 512_000
_OK: Final = 200


async def fetch_verifier(issuer: Issuer) -> Verifier:
    """Get the issuer's keys, and make of them what reads its tokens."""
    try:
        with anyio.fail_after(_WHOLE_SECONDS):
            async with HttpClient() as http:
                return await _Asking(http, issuer).verifier()
    except TimeoutError:
        raise CallTimedOut(f"{issuer.url} took more than {_WHOLE_SECONDS:g} s.") from None


class _Asking:
    """One visit to the issuer."""

    def __init__(self, http: HttpClient, issuer: Issuer) -> None:
        self._http = http
        self._issuer = issuer

    async def verifier(self) -> Verifier:
        issuer = self._issuer
        address = issuer.jwks_url or await self._said_address()
        keys = read_keys(await self._json(address))
        if keys is None:
            raise SourceFailed(f"{address} has no key that a signature could be checked with.")
        return Verifier(
            issuer=issuer.url,
            audiences=issuer.audiences,
            keys=keys,
            terms=Terms(scopes=issuer.scope_claims, name=issuer.name_claim, claims=issuer.claims),
        )

    async def _said_address(self) -> str:
        """Find the issuer's metadata, and in them the address of its keys."""
        problems = list[str]()
        for place in metadata_addresses(self._issuer.url):
            try:
                return self._keys_address(place, await self._json(place))
            except OpenFangError as error:
                problems.append(error.message)
        raise SourceFailed(" ".join(problems), way_out="set auth.issuer.jwks_url")

    def _keys_address(self, place: str, document: Mapping[str, Any]) -> str:
        """Take the word of the issuer's own metadata alone (RFC 8414, section 3.3)."""
        if document.get("issuer") != self._issuer.url:
            raise SourceFailed(f"{place} describes another issuer.")
        address = document.get("jwks_uri")
        if not isinstance(address, str):
            raise SourceFailed(f"{place} names no jwks_uri.")
        return address

    async def _json(self, url: str) -> Mapping[str, Any]:
        response = await self._http.fetch(
            Request(
                url=url,
                allow_hosts=("*",),
                headers={"Accept": "application/json"},
                limit=_LARGEST,
                timeout=_SECONDS,
                allow_private=self._issuer.allow_private,
            )
        )
        if not self._issuer.allow_private and not response.url.startswith("https://"):
            raise SourceFailed(f"{url} leads to {response.url}, which is not https://.")
        if response.status != _OK or response.truncated:
            what = f"more than {_LARGEST} bytes" if response.truncated else str(response.status)
            raise SourceFailed(f"{url} answered with {what}.")
        try:
            document = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise SourceFailed(f"{url} did not answer with a JSON object.")
        return cast("dict[str, Any]", document)


def metadata_addresses(issuer: str) -> tuple[str, ...]:
    """Where an issuer may describe itself: RFC 8414, and OpenID Connect in both of its forms."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
    return tuple(dict.fromkeys(places))
