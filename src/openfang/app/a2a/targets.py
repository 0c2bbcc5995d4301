"""Where push notifications may go. Whoever sets one does not learn what our resolver knows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.host.names import system_resolve
from openfang.safety.urls import AddressRefused, check_address, parse_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.host.names import Resolve
    from openfang.safety.urls import Target

_log = logging.getLogger("openfang.a2a")
_SECONDS: Final = 5.0
_WAY_OUT: Final = "name a public address; an operator opens others by a2a.push.allow_private"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Judges addresses by what is configured now."""

    allow_private: Callable[[], bool]
    resolve: Resolve = system_resolve

    async def check(self, url: str) -> None:
        """Refuse a URL that notifications may not be sent to."""
        try:
            target = parse_target(url)
        except AddressRefused as refusal:
            raise _refused(f"Nothing can be sent to this URL: {refusal.rule}.") from None
        try:
            with anyio.fail_after(_SECONDS):
                await self._check_address(target)
        except (AddressRefused, TimeoutError) as refusal:
            _log.warning("No push notification goes to %s: %s", target.host, refusal)
            raise _refused(f"{target.host} is not a host that can be notified.") from None

    async def _check_address(self, target: Target) -> None:
        if target.literal:
            check_address(target.host, allow_private=self.allow_private())
            return
        from openfang.host.resolve import CheckedResolver  # noqa: PLC0415 - aiohttp takes 0.4 s

        resolver = CheckedResolver(self.resolve, self.allow_private())
        await resolver.resolve(target.host, target.port)


def _refused(message: str) -> Rejected:
    return Rejected(message, status=400, rule="push_target", way_out=_WAY_OUT)
