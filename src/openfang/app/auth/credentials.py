"""What somebody may be known by: the configuration's key, a token of the issuer, a stored key."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from openfang.app.auth.scopes import BoundKey
from openfang.app.home.first_key import DEFAULT_PROJECT
from openfang.core.keys import Key
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.app.auth.callers import Credential
    from openfang.app.auth.issuer import TrustedIssuer
    from openfang.app.auth.scopes import Binding
    from openfang.config.models import Config
    from openfang.storage.keys import KeyStore


@dataclass(frozen=True, slots=True)
class Credentials:
    """Finds them by their secrets. Only stored keys are waited for."""

    keys: KeyStore
    issuer: TrustedIssuer
    config: Callable[[], Config]

    async def find(self, secret: str) -> Credential | None:
        """Find what this is the secret of, if it is in force."""
        if self.at_hand(secret):
            return self.known(secret)
        key = await self.keys.find_key(secret)
        return key and self.bound(key)

    def at_hand(self, secret: str) -> bool:
        """Whether it would be known without a look at what is stored, or not at all."""
        return self._configured(secret) or self.issuer.reads(secret)

    def known(self, secret: str) -> Credential | None:
        """Find one that is at hand."""
        if self._configured(secret):
            return Key(id="config", name="config", projects=(DEFAULT_PROJECT,))
        holder = self.issuer.find(secret)
        return holder and self.bound(holder)

    def bound(self, key: Binding) -> Credential:
        """Hold a key to the toolsets and agents that it opens, as they are configured now."""
        return BoundKey(key, self.config()) if key.bound else key

    def _configured(self, secret: str) -> bool:
        """Compare in constant time, whatever bytes the environment held."""
        configured = self.config().api_key
        return configured is not None and hmac.compare_digest(
            configured.get_secret_value().encode(errors="surrogatepass"),
            secret.encode(errors="surrogatepass"),
        )
