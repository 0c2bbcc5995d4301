"""Sign-ins in the encrypted secret store; what is secret in them is redacted everywhere."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from anyio import to_thread

from openfang.core.errors import NotFound
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from openfang.host.secrets import SecretStore


def _unread(values: Iterable[str], owner: str) -> None:
    """Nothing is shown where nobody reads."""
    del values, owner


@dataclass(frozen=True, slots=True)
class StoredVault:
    """A home's secret store. `redact` hears of the values of an entry when they change."""

    store: SecretStore
    redact: Callable[[Iterable[str], str], None] = _unread
    _told: dict[str, frozenset[str]] = field(
        default_factory=dict[str, "frozenset[str]"], repr=False
    )

    async def read(self, name: str) -> str | None:
        """Read a text, if there is one."""
        return await to_thread.run_sync(self._get, name)

    def _get(self, name: str) -> str | None:
        try:
            return self.store.get(name)
        except NotFound:
            return None

    async def write(self, name: str, text: str) -> None:
        """Keep a text in the place of the one before."""
        await to_thread.run_sync(self.store.set, name, text)

    async def replace(self, name: str, text: str) -> bool:
        """Keep a text in the place of the one before, if that is still there."""
        return await to_thread.run_sync(self.store.replace, name, text)

    async def remove(self, name: str) -> None:
        """Delete a text, if there is one."""
        await to_thread.run_sync(self._delete, name)

    def _delete(self, name: str) -> None:
        with suppress(NotFound):
            self.store.delete(name)

    async def learn(self, name: str, secrets: Iterable[str]) -> None:
        """Know what is secret in an entry, now and before."""
        values = frozenset(secrets)
        if values != self._told.get(name, frozenset()):
            await to_thread.run_sync(self.redact, values, name)
            self._told[name] = values
