"""What is known of a sign-in, in the SDK's words. Importing this module takes 1.5 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

if TYPE_CHECKING:
    from openfang.sources.mcp.oauth.sign_in import Consent, Wish


class Memory:
    """The provider's storage; what it holds in the end is kept elsewhere."""

    def __init__(self, wish: Wish) -> None:
        self._tokens = _tokens(wish)
        self._client = _client(wish)

    async def get_tokens(self) -> OAuthToken | None:
        """Give the tokens that are known."""
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take new tokens."""
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Say who we are."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take note of who we are now."""
        self._client = client_info


def _tokens(wish: Wish) -> OAuthToken | None:
    account = wish.account
    if not account.access or (wish.oauth.grant == "client_credentials" and wish.expired):
        return None
    return OAuthToken(
        access_token=account.access,
        scope=account.scope or None,
        refresh_token=account.refresh or None,
    )


def _client(wish: Wish) -> OAuthClientInformationFull | None:
    """Who we are there: as the operator says, or as registered before for this redirect."""
    oauth, consent = wish.oauth, wish.consent
    if oauth.client_id:
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=oauth.client_secret or None,
            token_endpoint_auth_method="client_secret_basic" if oauth.client_secret else "none",
            redirect_uris=[AnyUrl(consent.redirect_uri)] if consent else None,
            issuer=oauth.issuer or wish.account.issuer or None,
        )
    known = wish.account.client
    if not known or (consent and consent.redirect_uri not in known.get("redirect_uris", ())):
        return None
    return OAuthClientInformationFull.model_validate(known)


def described(consent: Consent | None, scope: str | None) -> OAuthClientMetadata:
    """Describe us to an authorization server."""
    return OAuthClientMetadata(
        client_name="OpenFang",
        redirect_uris=[AnyUrl(consent.redirect_uri)] if consent else None,
        scope=scope,
    )
