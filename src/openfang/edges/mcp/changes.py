"""Changes to what is offered, told to who wants to hear of them; of many at once, one of a kind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.core.news import Listed, News, Updated
from openfang.edges.mcp.client import options_of
from openfang.protocols.mcp.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openfang.edges.mcp.context import Context, Talk
    from openfang.edges.mcp.ports import Offer

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_BREATH: Final = 0.05
_FILTERS: Final = {
    "toolsListChanged": Listed.TOOLS,
    "promptsListChanged": Listed.PROMPTS,
    "resourcesListChanged": Listed.RESOURCES,
}
_MOST_WATCHED: Final = 1000


def tell_changes(
    offer: Offer, talk: Talk, send: Callable[[str, Mapping[str, Any]], None]
) -> Callable[[], None]:
    """Tell a client of the handshake era; call what is returned to end it."""

    def wanted(news: News) -> bool:
        return isinstance(news, Listed) or news.uri in talk.watched

    return _Watching(offer, wanted, send).end


async def listen(params: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Tell a client of the modern era, for as long as it listens."""
    lists, addresses = _filter(params)
    options = options_of(params, context)
    tag = {} if context.number is None else {SUBSCRIPTION: context.number}

    def send(method: str, told: Mapping[str, Any]) -> None:
        context.link.notify(method, {**told, "_meta": tag})

    def wanted(news: News) -> bool:
        return news in lists if isinstance(news, Listed) else news.uri in addresses

    watching, watched = _Watching(context.offer, wanted, send), list[str]()
    try:
        for uri in addresses:
            await context.offer.subscribe(uri, options)
            watched.append(uri)
        send("notifications/subscriptions/acknowledged", {"notifications": _honoured(params)})
        await asyncio.get_running_loop().create_future()
    finally:
        watching.end()
        for uri in watched:
            await asyncio.shield(context.offer.unsubscribe(uri, options))
    return {}


def _filter(params: Mapping[str, Any]) -> tuple[set[Listed], set[str]]:
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "notifications is missing, or no object")
    fields = cast("dict[str, Any]", wanted)
    lists = {listed for name, listed in _FILTERS.items() if fields.get(name) is True}
    return lists, _addresses(fields.get("resourceSubscriptions", []))


def _addresses(wanted: object) -> set[str]:
    if not isinstance(wanted, list):
        raise RpcError(INVALID_PARAMS, "resourceSubscriptions is no list")
    entries = cast("list[object]", wanted)
    if len(entries) > _MOST_WATCHED:
        raise RpcError(INVALID_PARAMS, f"more than {_MOST_WATCHED} resourceSubscriptions")
    return {uri for uri in entries if isinstance(uri, str)}


def _honoured(params: Mapping[str, Any]) -> dict[str, Any]:
    lists, addresses = _filter(params)
    heard: dict[str, Any] = {name: True for name, listed in _FILTERS.items() if listed in lists}
    return {**heard, "resourceSubscriptions": sorted(addresses)} if addresses else heard


class _Watching:
    """Collects news for a moment, and sends each once."""

    def __init__(
        self,
        offer: Offer,
        wanted: Callable[[News], bool],
        send: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._wanted = wanted
        self._send = send
        self._news: dict[News, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stop = offer.watch(self._heard)

    def end(self) -> None:
        """Send nothing more."""
        self._stop()
        if self._timer is not None:
            self._timer.cancel()

    def _heard(self, news: News) -> None:
        if self._wanted(news):
            self._news[news] = None
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_BREATH, self._flush)

    def _flush(self) -> None:
        news, self._news, self._timer = self._news, {}, None
        for one in news:
            match one:
                case Listed():
                    self._send(f"notifications/{one.value}/list_changed", {})
                case Updated(uri=uri):
                    self._send("notifications/resources/updated", {"uri": uri})
