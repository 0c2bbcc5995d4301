"""How the client signs in where the suite wants it to: without a person, and without a disk."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from anyio import to_thread

from openfang.sources.mcp.oauth.sign_in import SignIns
from openfang.sources.mcp.spec import OAuth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

METADATA: Final = "https://conformance-test.local/client-metadata.json"
SECONDS: Final = 20


class Memory:
    """A vault for one run."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def read(self, name: str) -> str | None:
        return self.kept.get(name)

    async def write(self, name: str, text: str) -> None:
        self.kept[name] = text

    async def replace(self, name: str, text: str) -> bool:
        there = name in self.kept
        if there:
            self.kept[name] = text
        return there

    async def remove(self, name: str) -> None:
        self.kept.pop(name, None)

    async def learn(self, name: str, secrets: Iterable[str]) -> None:
        del name, secrets


class Agreeable:
    """Opens what it is shown, and goes where it is sent: as far as the answer."""

    redirect_uri = "http://127.0.0.1:1/callback"

    async def ask(self, url: str) -> Mapping[str, str]:
        location = await to_thread.run_sync(redirected, url)
        return dict(parse_qsl(urlsplit(location).query))


def redirected(url: str) -> str:
    """Open an address of this machine, and say where it leads."""
    parts = urlsplit(url)
    assert parts.hostname in {"localhost", "127.0.0.1"}, url
    connection = http.client.HTTPConnection(parts.netloc, timeout=SECONDS)
    connection.request("GET", f"{parts.path}?{parts.query}")
    location = connection.getresponse().headers["Location"]
    connection.close()
    return location


def sign_ins() -> SignIns:
    """Make what gets tokens: `Reach(..., sign_ins=sign_ins())`."""
    return SignIns(vault=Memory(), consent=Agreeable())


def oauth(scenario: str, context: Mapping[str, Any]) -> OAuth:
    """Say how to sign in: `Http(..., oauth=oauth(scenario, context))`."""

    def known(name: str) -> str:
        return str(context.get(name, ""))

    by_itself = scenario.startswith("auth/client-credentials")
    return OAuth(
        grant="client_credentials" if by_itself else "authorization_code",
        client_id=known("client_id"),
        client_secret=known("client_secret"),
        private_key=known("private_key_pem"),
        issuer=known("issuer"),
        client_metadata_url="" if known("client_id") else METADATA,
    )
