"""What changed in what is offered, told to everybody in the house who wants to hear of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from openfang.core import news

_log = logging.getLogger("openfang.news")


class News:
    """Passes news on at once. It belongs to the event loop: nothing here waits."""

    def __init__(self) -> None:
        self._hearers: dict[object, news.Hearer] = {}

    def subscribe(self, hearer: news.Hearer) -> Callable[[], None]:
        """Tell this one from now on; call what is returned to end that."""
        ticket = object()
        self._hearers[ticket] = hearer

        def stop() -> None:
            self._hearers.pop(ticket, None)

        return stop

    def publish(self, one: news.News) -> None:
        """Tell everybody."""
        for hearer in tuple(self._hearers.values()):
            try:
                hearer(one)
            except Exception:  # noqa: BLE001 - one hearer's fault must not deafen the others
                _log.exception("A hearer of news failed")
