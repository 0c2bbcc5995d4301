"""The SDK's OAuth providers, driven over our own HTTP client.

A provider is a generator of requests. Whatever a server makes it ask for (metadata, registration,
tokens) passes the address checks that every request of ours passes, and stays with the host that
was asked. Importing this module takes 1.5 s.
"""

from __future__ import annotations

import logging
import time
import warnings
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs

import httpx2
import orjson
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthMetadata,
    ProtectedResourceMetadata,
)
from mcp.shared.exceptions import MCPDeprecationWarning

from openfang.protocols.mcp.versions import NEWEST
from openfang.sources.mcp.oauth.account import Account
from openfang.sources.mcp.oauth.key import assertions
from openfang.sources.mcp.oauth.memory import Memory, described
from openfang.sources.mcp.oauth.sign_in import Revoked, SignInFailed, Wish
from openfang.sources.mcp.oauth.way import Way

if TYPE_CHECKING:
    from collections.abc import Mapping

_OK: Final = 200
_CLIENT_ERRORS: Final = range(400, 500)
_TOO_MANY: Final = 429
_SHOWN: Final = 300
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
_JSON: Final = "application/json"

# What goes wrong is told by our own errors; the library would log what servers said, unread.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)


async def obtain(wish: Wish) -> Account:
    """Get a token. Raises `SignInFailed`."""
    flow = _Flow(wish)
    try:
        return await flow.run()
    except OAuthRegistrationError as error:
        raise flow.unregistered(str(error)) from error
    except OAuthTokenError as error:
        raise flow.no_token(str(error)) from error
    except OAuthFlowError as error:
        raise flow.refused(str(error)) from error
    except SignInFailed:
        raise
    except Exception as error:  # whatever the library makes of what servers say
        raise SignInFailed(
            f"What the authorization server of {wish.name} says makes no sense "
            f"({type(error).__name__}: {str(error)[:_SHOWN]})",
            way_out="ask whoever runs that server",
        ) from error


class _ByConsent(OAuthClientProvider):
    """A provider that prefers one authorization server among several."""

    def __init__(self, issuer: str, *arguments: Any, **more: Any) -> None:  # noqa: ANN401 - its own
        super().__init__(*arguments, **more)
        self._issuer = issuer

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = self._issuer.rstrip("/")
        return next((one for one in advertised if one.rstrip("/") == wanted), advertised[0])


class _Flow:
    """One attempt to get a token."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._answer: Mapping[str, str] = {}
        self._last: httpx2.Response | None = None
        self._memory = Memory(wish)
        self._way = Way(wish)

    async def run(self) -> Account:
        """Drive the provider until it holds a token that was not refused."""
        self._provider = await self._made()
        request = httpx2.Request(
            "POST", self._wish.reached.shown, headers={"mcp-protocol-version": NEWEST}
        )
        flow = self._provider.async_auth_flow(request)
        challenged = False
        try:
            outgoing = await anext(flow)
            while outgoing is not request or not self._is_done(challenged):
                if outgoing is request:
                    challenged = True
                    response = self._challenge(request)
                else:
                    response = await self._asked(outgoing)
                outgoing = await flow.asend(response)
        finally:
            await flow.aclose()
        return self._account()

    def _is_done(self, challenged: bool) -> bool:  # noqa: FBT001 - it reads as what it is
        """Whether there is a token that is not the one we came with."""
        tokens = self._provider.context.current_tokens
        return tokens is not None and (
            challenged or tokens.access_token != self._wish.account.access
        )

    def _challenge(self, request: httpx2.Request) -> httpx2.Response:
        """Answer as the server did."""
        said = self._wish.challenge
        headers = {"WWW-Authenticate": said.header()}
        return httpx2.Response(said.status, headers=headers, request=request)

    # The provider

    async def _made(self) -> OAuthClientProvider:
        provider = await self._by_grant()
        account, context = self._wish.account, provider.context
        if account.server and (self._wish.oauth.grant == "authorization_code"):
            context.oauth_metadata = OAuthMetadata.model_validate(account.server)
            context.auth_server_url = account.issuer or None
        if account.resource:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                account.resource
            )
        context.token_expiry_time = 1.0 if self._wish.expired else account.expires_at
        return provider

    async def _by_grant(self) -> OAuthClientProvider:
        wish, oauth = self._wish, self._wish.oauth
        url, scope = wish.reached.shown, wish.challenge.scope or None
        if oauth.grant == "authorization_code":
            return _ByConsent(
                oauth.issuer,
                url,
                described(wish.consent, scope),
                self._memory,
                self._redirect,
                self._redirected,
                client_metadata_url=oauth.client_metadata_url or None,
            )
        # Who got our secret once gets it again, and nobody else.
        issuer = oauth.issuer or wish.account.issuer or None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            if oauth.private_key:
                sign = await assertions(oauth.client_id, oauth.private_key)
                return PrivateKeyJWTOAuthProvider(
                    url, self._memory, oauth.client_id, sign, scope, issuer
                )
            return ClientCredentialsOAuthProvider(
                url,
                self._memory,
                oauth.client_id,
                oauth.client_secret,
                scope=scope,
                issuer=issuer,
            )

    # A person

    async def _redirect(self, url: str) -> None:
        self._check_issuer()
        metadata = self._provider.context.oauth_metadata
        methods = metadata.code_challenge_methods_supported if metadata else ["S256"]
        if "S256" not in (methods or ()):
            raise SignInFailed(
                f"{self._server} does not say that it knows PKCE (S256), without which a sign-in "
                "could be stolen.",
                way_out="ask whoever runs that server",
            )
        if self._wish.consent is None:
            raise self._declined({"error": "a person is needed"})
        self._way.check(url)  # no browser opens what we would not ask ourselves
        self._answer = await self._wish.consent.ask(url)

    async def _redirected(self) -> AuthorizationCodeResult:
        answer = self._answer
        if "error" in answer:
            raise self._declined(answer)
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss")
        )

    def _declined(self, answer: Mapping[str, str]) -> SignInFailed:
        again = f"openfang servers login {self._wish.name}"
        if answer["error"] == "access_denied":
            return SignInFailed(f"The sign-in to {self._wish.name} was declined.", way_out=again)
        why = " ".join(filter(None, (answer["error"], answer.get("error_description"))))
        return SignInFailed(f"{self._server} gives no sign-in: {why[:_SHOWN]}", way_out=again)

    # What is asked and answered

    async def _asked(self, outgoing: httpx2.Request) -> httpx2.Response:
        self._check_purpose(outgoing)
        response = self._last = await self._way.send(outgoing)
        if outgoing.method == "GET":
            self._learn(response.content)
        elif _form(outgoing).get("grant_type") == ["refresh_token"]:
            self._check_refreshed(response)
        return response

    def _check_purpose(self, outgoing: httpx2.Request) -> None:
        """Keep the provider from guessing: no secret goes where no metadata names the place."""
        metadata, oauth = self._provider.context.oauth_metadata, self._wish.oauth
        if outgoing.method != "POST":
            return
        self._check_issuer()
        if outgoing.headers.get("content-type") == _JSON:
            if oauth.client_id:
                raise self.refused("the client is registered with another authorization server")
            if metadata is not None and metadata.registration_endpoint is None:
                raise self.unregistered("it offers no registration")
        elif metadata is None and (oauth.client_secret or oauth.private_key):
            raise self._not_found()

    def _check_issuer(self) -> None:
        """Deal with nobody but the authorization server that the operator named, if one."""
        wanted, metadata = self._wish.oauth.issuer, self._provider.context.oauth_metadata
        found = str(metadata.issuer) if metadata else "no authorization server"
        if wanted and found.rstrip("/") != wanted.rstrip("/"):
            raise self.refused(f"the server leads to {found}, and not to {wanted}")

    def _learn(self, body: bytes) -> None:
        """See how the authorization server wants clients to prove who they are."""
        methods = _json(body).get("token_endpoint_auth_methods_supported")
        if not isinstance(methods, list):
            return
        context = self._provider.context
        chosen = next((one for one in _METHODS if one in methods), None)
        context.client_metadata.token_endpoint_auth_method = cast("Any", chosen)
        client = context.client_info
        if self._wish.oauth.client_secret and client is not None:
            by_post = "client_secret_post" in methods and "client_secret_basic" not in methods
            method = "client_secret_post" if by_post else "client_secret_basic"
            client.token_endpoint_auth_method = method

    def _check_refreshed(self, response: httpx2.Response) -> None:
        """Tell a refusal, after which only a person helps, from a failure that may pass."""
        if response.status_code == _OK or self._wish.consent is not None:
            return
        if self._wish.oauth.grant == "client_credentials":
            return
        if response.status_code in _CLIENT_ERRORS and response.status_code != _TOO_MANY:
            raise Revoked(
                f"{self._server} has ended the sign-in: {_error(response)}",
                way_out=f"openfang servers login {self._wish.name}",
            )
        raise self.no_token("")

    # The end

    def _account(self) -> Account:
        context, wish = self._provider.context, self._wish
        tokens = context.current_tokens
        if tokens is None:
            raise self.no_token("it gave none")
        metadata, resource = context.oauth_metadata, context.protected_resource_metadata
        client = context.client_info
        return Account(
            url=wish.reached.url,
            grant=wish.oauth.grant,
            issuer=str(metadata.issuer) if metadata else "",
            access=tokens.access_token,
            refresh=tokens.refresh_token or "",
            scope=tokens.scope or "",
            issued_at=time.time(),
            expires_at=context.token_expiry_time,
            client=client.model_dump(mode="json", exclude_none=True) if client else {},
            server=metadata.model_dump(mode="json", exclude_none=True) if metadata else {},
            resource=resource.model_dump(mode="json", exclude_none=True) if resource else {},
        )

    # What can go wrong

    @property
    def _server(self) -> str:
        """Who gives tokens, as far as it is known."""
        context = self._provider.context
        if context.oauth_metadata is not None:
            return f"The authorization server {context.oauth_metadata.issuer}"
        return f"The authorization server of {self._wish.name}"

    def _not_found(self) -> SignInFailed:
        return SignInFailed(
            f"{self._wish.reached.shown} names no authorization server, and is none.",
            way_out="look at its address; or give it a token: "
            'headers = { Authorization = "Bearer ${NAME}" }',
        )

    def unregistered(self, why: str) -> SignInFailed:
        """No client may be registered."""
        if self._provider.context.oauth_metadata is None:
            return self._not_found()
        status = f" ({_error(self._last)})" if self._last and self._last.is_error else f" ({why})"
        return SignInFailed(
            f"{self._server} does not register us{status[: _SHOWN + 3]}.",
            way_out="register a client there by hand, and set client_id of the server's `oauth`",
        )

    def no_token(self, why: str) -> SignInFailed:
        """No token was given."""
        said = _error(self._last) if self._last is not None else why
        ways = {
            "invalid_client": "look at client_id, client_secret and private_key of its `oauth`",
            "unauthorized_client": "let the client have this grant at the authorization server",
            "invalid_scope": "look at scopes of its `oauth`",
            "invalid_grant": f"openfang servers login {self._wish.name}",
        }
        code = _json(self._last.content).get("error") if self._last is not None else ""
        return SignInFailed(
            f"{self._server} gave no token: {said}",
            way_out=ways.get(str(code), f"openfang servers test {self._wish.name}"),
        )

    def refused(self, why: str) -> SignInFailed:
        """What a server says does not belong together, or is not what the operator said."""
        return SignInFailed(
            f"The sign-in to {self._wish.name} was given up: {why[:_SHOWN]}",
            way_out="look at the address and at issuer of its `oauth`; if they are right, somebody "
            "may try to take the sign-in: do not go on",
        )


def _form(outgoing: httpx2.Request) -> Mapping[str, list[str]]:
    return parse_qs(outgoing.read().decode(errors="replace"))


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found: object = orjson.loads(body)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _error(response: httpx2.Response) -> str:
    """Say in a few words what an error says of itself (RFC 6749, 5.2)."""
    said = _json(response.content)
    words = (str(said.get(key, "")) for key in ("error", "error_description"))
    return " ".join(filter(None, (f"status {response.status_code},", *words)))[:_SHOWN].rstrip(",")
