"""An HTTP client that signs what it sends, and gets a better token when a server wants one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openfang.sources.mcp.oauth.challenge import UNAUTHORIZED, Challenge, read_challenge
from openfang.sources.mcp.oauth.sign_in import SignInFailed
from openfang.sources.mcp.transport import AuthNeeded, Lost

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from openfang.host.http import HttpClient, Request, Streaming
    from openfang.sources.mcp.oauth.sign_in import Credentials

_FORBIDDEN: Final = 403


class Signed:
    """A client and the credentials that it sends. Each request is repeated once for each reason."""

    def __init__(self, http: HttpClient, credentials: Credentials) -> None:
        self._http = http
        self._credentials = credentials

    def stream(self, request: Request) -> AbstractAsyncContextManager[Streaming]:
        """Make a request and hold its answer; the last one, if none was good enough."""
        return _Held(self._http, self._credentials, request)


class _Held:
    """A request, and its last answer for the length of an `async with`."""

    __slots__ = ("_credentials", "_held", "_http", "_request")

    def __init__(self, http: HttpClient, credentials: Credentials, request: Request) -> None:
        self._http = http
        self._credentials = credentials
        self._request = request

    async def __aenter__(self) -> Streaming:
        seen: set[int] = set()
        while True:
            sent = await self._headers()
            held = self._held = self._http.stream(_with(self._request, sent))
            answer = await held.__aenter__()
            challenge = _challenge(answer)
            if challenge is None or challenge.status in seen:
                return answer
            await held.__aexit__(None, None, None)
            seen.add(challenge.status)
            await self._challenged(sent, challenge)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._held.__aexit__(kind, error, trace)

    async def _headers(self) -> Mapping[str, str]:
        try:
            return await self._credentials.headers()
        except SignInFailed as failed:
            raise Lost(_sentence(failed)) from failed

    async def _challenged(self, sent: Mapping[str, str], challenge: Challenge) -> None:
        try:
            await self._credentials.challenged(sent, challenge)
        except SignInFailed as failed:
            raise AuthNeeded(_sentence(failed), way_out=failed.way_out) from failed


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
