"""An HTTP client that signs what it sends, and gets a better token when a server wants one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.sources.mcp.oauth.challenge import UNAUTHORIZED, Challenge, read_challenge
from openfang.sources.mcp.oauth.sign_in import SignInFailed
from openfang.sources.mcp.transport import AuthNeeded, Lost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from openfang.host.http import HttpClient, Request, Streaming
    from openfang.sources.mcp.oauth.sign_in import Credentials

_FORBIDDEN: Final = 403


class Signed:
    """A client and the credentials that it sends. Each request is repeated once for each reason."""

    def __init__(self, http: HttpClient, credentials: Credentials) -> None:
        self._http = http
        self._credentials = credentials

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[Streaming]:
        """Make a request and hold its answer; the last one, if none was good enough."""
        seen: set[int] = set()
        while True:
            sent = await self._headers()
            async with self._http.stream(_with(request, sent)) as answer:
                challenge = _challenge(answer)
                if challenge is None or challenge.status in seen:
                    yield answer
                    return
            seen.add(challenge.status)
            try:
                await self._credentials.challenged(sent, challenge)
            except SignInFailed as failed:
                raise AuthNeeded(_sentence(failed), way_out=failed.way_out) from failed

    async def _headers(self) -> Mapping[str, str]:
        try:
            return await self._credentials.headers()
        except SignInFailed as failed:
            raise Lost(_sentence(failed)) from failed


def _with(request: Request, headers: Mapping[str, str]) -> Request:
    return replace(request, headers={**request.headers, **headers}) if headers else request


def _challenge(answer: Streaming) -> Challenge | None:
    """Read what better credentials would help against."""
    if answer.status not in {UNAUTHORIZED, _FORBIDDEN}:
        return None
    challenge = read_challenge(answer.status, answer.headers("WWW-Authenticate"))
    return challenge if answer.status == UNAUTHORIZED or challenge.wants_scope else None


def _sentence(failed: SignInFailed) -> str:
    return f"{failed.message}: {failed.way_out}" if failed.way_out else failed.message
