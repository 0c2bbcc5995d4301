"""The issuer whose access tokens open the HTTP edges: its keys, and the tokens that they verified.

One task asks the network, for everybody: for the first keys, for a key that is not known, and now
and then while tokens come. Nobody waits for it whose token was signed with a known key.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from dataclasses import field
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio

from openfang.app.auth.claims import Bad, Holder, holder_of
from openfang.core.errors import OpenFangError, Rejected
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from openfang.app.auth.tokens import Verifier
    from openfang.config.node import Issuer
    from openfang.core.ports import Clock

_log = logging.getLogger("openfang.issuer")
_FRESH_SECONDS = 600.0
_STALE_SECONDS = 3600.0
_AGAIN_SECONDS = 10.0
_MOST = 10_000
_FORM = re.compile(r"e[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_NEVER = float("-inf")


@dataclass(slots=True)
class TrustedIssuer:
    """Tells good tokens from others. Where the configuration names no issuer, there are none."""

    clock: Clock
    section: Issuer | None = None
    _verifier: Verifier | None = None
    _fetched: float = _NEVER
    _tried: float = _NEVER
    _failed: bool = False
    _held: OrderedDict[bytes, Holder] = field(default_factory=OrderedDict[bytes, Holder])
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    _settled: anyio.Event = field(default_factory=anyio.Event)

    def configure(self, section: Issuer | None) -> None:
        """Trust another issuer, or on other terms: what was found out before counts no longer."""
        if section != self.section:
            self.section, self._verifier, self._failed = section, None, False
            self._fetched = self._tried = _NEVER
            self._held.clear()

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that a token should have."""
        return self.section.scopes if self.section else ()

    def reads(self, secret: str) -> bool:
        """Whether this has the form of a token, and there is somebody who could have issued it."""
        return self.section is not None and _FORM.fullmatch(secret) is not None

    async def prepare(self, secret: str) -> None:
        """Have the keys at hand by which a token is judged; any other secret needs none."""
        if not self.reads(secret):
            return
        lacking = self._lacks_key(secret)
        if self._may_ask(fresh=not lacking):
            self._wanted.set()
            if lacking:
                await self._settled.wait()
        if self._failed and self._lacks_key(secret):
            raise self._unavailable()

    def find(self, secret: str) -> Holder | None:
        """Return who holds this, if it is a token that is good by the keys at hand."""
        found = self.read(secret) if self.reads(secret) and self._usable else None
        return found if isinstance(found, Holder) else None

    def read(self, secret: str) -> Holder | Bad:
        """Judge a token by the keys at hand. What is good is remembered until it expires."""
        verifier, section, now = self._usable, self.section, self.clock.time_ns()
        if verifier is None or section is None:
            raise self._unavailable()
        mark = sha256(secret.encode()).digest()
        known = self._held.get(mark)
        if known is not None and known.expires_at > now:
            self._held.move_to_end(mark)
            return known
        said = verifier.read(secret, now)
        if isinstance(said, Bad):
            self._held.pop(mark, None)
            return said
        holder = self._held[mark] = holder_of(said, section)
        if len(self._held) > _MOST:
            self._held.popitem(last=False)
        return holder

    async def run(self) -> None:
        """Ask the issuer whenever that is wished."""
        while True:
            await self._wanted.wait()
            await self._refresh()
            self._wanted = anyio.Event()
            settled, self._settled = self._settled, anyio.Event()
            settled.set()

    async def _refresh(self) -> None:
        section = self.section
        if section is None:
            return
        from openfang.app.auth.jwks import fetch_verifier  # noqa: PLC0415 - aiohttp takes 0.4 s

        try:
            verifier = await fetch_verifier(section)
        except OpenFangError as error:
            _log.warning("The issuer %s gave no keys: %s", section.url, error.message)
            verifier = None
        if section is self.section:
            self._took(verifier)

    def _took(self, verifier: Verifier | None) -> None:
        """Judge by the new keys from now on; while there are none, by the old ones for a time."""
        self._tried = self.clock.monotonic()
        self._failed = verifier is None
        if verifier is not None:
            self._verifier, self._fetched = verifier, self._tried
            self._held.clear()

    @property
    def _usable(self) -> Verifier | None:
        return self._verifier if self._age < _STALE_SECONDS else None

    @property
    def _age(self) -> float:
        return self.clock.monotonic() - self._fetched

    def _lacks_key(self, secret: str) -> bool:
        verifier = self._usable
        return verifier is None or verifier.lacks_key(secret)

    def _may_ask(self, *, fresh: bool) -> bool:
        """Whether it is time: keys that will do are asked for seldom, others not all the time."""
        if fresh and self._age < _FRESH_SECONDS:
            return False
        return self.clock.monotonic() - self._tried >= _AGAIN_SECONDS

    def _unavailable(self) -> Rejected:
        url = self.section.url if self.section else ""
        return Rejected(
            f"The issuer {url} does not say with which keys its tokens are checked.",
            status=503,
            rule="issuer_unavailable",
            way_out="try again; the log of the node says why",
        )
