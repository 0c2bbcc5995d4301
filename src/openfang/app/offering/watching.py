"""Hearing of changes to what is offered, each to those whom it concerns and to no others."""

from __future__ import annotations

import asyncio
from dataclasses import field
from typing import TYPE_CHECKING, Final, Protocol

from openfang.core.errors import NotFound
from openfang.core.news import Listed, Updated
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from openfang.app.parts import Parts
    from openfang.core.events import ToolsChanged
    from openfang.core.news import Hearer, News

_BREATH: Final = 0.05


class Watched(Protocol):
    """What is offered to some, who are all offered the same."""

    def look(self, listed: Listed) -> object:
        """Give a list; it equals the last one for as long as nobody could see a difference."""
        ...

    def addresses(self, updated: Updated) -> Collection[str]:
        """Say by which addresses a resource may be known there, if it is there."""
        ...


@dataclass(slots=True)
class _Group:
    watched: Watched
    hearers: dict[object, Hearer] = field(default_factory=dict[object, "Hearer"])
    seen: dict[Listed, object] = field(default_factory=dict[Listed, object])

    def look_again(self) -> None:
        """Tell what is not what it was."""
        for listed in Listed:
            now = self.now(listed)
            if now != self.seen[listed]:
                self.seen[listed] = now
                self.tell(listed)

    def now(self, listed: Listed) -> object:
        """Give a list as it is; where the place itself is gone there is none."""
        try:
            return self.watched.look(listed)
        except NotFound:
            return None

    def pass_on(self, updated: Updated) -> None:
        """Tell of a changed resource, by every address that it may be known by."""
        try:
            addresses = self.watched.addresses(updated)
        except NotFound:
            return
        for address in addresses:
            self.tell(Updated(updated.server, address))

    def tell(self, news: News) -> None:
        """Tell everybody of the group."""
        for heard in tuple(self.hearers.values()):
            heard(news)


@dataclass(slots=True)
class Watchers:
    """Looks again after each change, once for all who are offered the same."""

    parts: Parts
    _groups: dict[Hashable, _Group] = field(default_factory=dict["Hashable", _Group])
    _stops: tuple[Callable[[], object], ...] = ()
    _timer: asyncio.TimerHandle | None = None

    def add(self, key: Hashable, watched: Watched, heard: Hearer) -> Callable[[], None]:
        """Tell somebody of changes, until what is returned is called."""
        if not self._stops:
            subscribed = self.parts.registry.subscribe(self._changed)
            self._stops = (subscribed, self.parts.news.subscribe(self._told))
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(watched)
            group.seen = {listed: group.now(listed) for listed in Listed}
        ticket = object()
        group.hearers[ticket] = heard

        def stop() -> None:
            self._remove(key, group, ticket)

        return stop

    def _remove(self, key: Hashable, group: _Group, ticket: object) -> None:
        group.hearers.pop(ticket, None)
        if not group.hearers and self._groups.get(key) is group:
            del self._groups[key]
        if not self._groups:
            self._end()

    def _end(self) -> None:
        for stop in self._stops:
            stop()
        self._stops = ()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _changed(self, event: ToolsChanged) -> None:
        """With tools, the right to resources and prompts may come and go."""
        del event
        self._soon()

    def _told(self, news: News) -> None:
        match news:
            case Listed():
                self._soon()
            case Updated():
                for group in tuple(self._groups.values()):
                    group.pass_on(news)

    def _soon(self) -> None:
        """Take a breath: many changes come together."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_BREATH, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        for group in tuple(self._groups.values()):
            group.look_again()
