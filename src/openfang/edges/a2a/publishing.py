"""Cards as they are served: written and signed once, and told again only to who does not know."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import orjson
from anyio.lowlevel import checkpoint

from openfang.core.values import dataclass
from openfang.edges.a2a.cards import current_card, merged_card, seed_card
from openfang.edges.api.exchange import JSON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a.types.a2a_pb2 import AgentCard

    from openfang.core.calls import Caller
    from openfang.edges.a2a.cards import Card
    from openfang.edges.a2a.ports import Described, House, Settings
    from openfang.edges.api.mount import Came

_MOST_KEPT: Final = 4096
_PUBLIC: Final = b"public, max-age=60"
_PRIVATE: Final = b"private, no-cache"
_HEAD: Final = ((b"vary", b"authorization, x-api-key"), (b"x-content-type-options", b"nosniff"))


@dataclass(frozen=True, slots=True)
class Paper:
    """Something written down, and the tag by which who has it asks whether it changed."""

    body: bytes
    tag: bytes


def paper(body: bytes) -> Paper:
    """Write something down."""
    return Paper(body, b'"%s"' % sha256(body).hexdigest()[:32].encode())


class Publishing:
    """Writes the cards of a house. A card is made when it is first asked for, and after a change.

    An agent as it is described and how it is served are all that a card depends on, so they are
    what it is kept under.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self.seed: Callable[[Described | None, Settings], Paper] = lru_cache(_MOST_KEPT)(_seed)
        self.current: Callable[[Described | None, Settings], Paper] = lru_cache(_MOST_KEPT)(
            self._current
        )

    def _current(self, agent: Described | None, settings: Settings) -> Paper:
        return paper(orjson.dumps(self._signed(agent, settings)))

    def _signed(self, agent: Described | None, settings: Settings) -> Card:
        """Sign what a reader of 1.0 sees; and, where there is more, all that there is."""
        card = current_card(agent, settings)
        signatures = [self._house.sign(card)]
        if settings.merged:
            card = merged_card(card)
            signatures.append(self._house.sign(card))
        return {**card, "signatures": signatures}

    async def listed(
        self, agents: Iterable[Described], settings: Settings, *, current: bool
    ) -> Paper:
        """Write the list of agents; the first one of many lets others go first in between."""
        write, cards = self.current if current else self.seed, list[bytes]()
        for agent in agents:
            cards.append(write(agent, settings).body)
            await checkpoint()
        total = str(len(cards)).encode()
        return paper(b'{"agents":[' + b",".join(cards) + b'],"total":' + total + b"}")

    async def agent_card(self, name: str, caller: Caller) -> AgentCard | None:
        """Show an agent to who may call it, in the types of the library."""
        settings = self._house.settings()
        agent = await self._house.agent(name, caller)
        if settings is None or agent is None:
            return None
        return _parsed(orjson.loads(self.current(agent, settings).body))


def _seed(agent: Described | None, settings: Settings) -> Paper:
    return paper(orjson.dumps(seed_card(agent, settings)))


def _parsed(card: dict[str, Any]) -> AgentCard:
    from openfang.edges.a2a.sdk import ParseDict, pb  # noqa: PLC0415 - a heavy library, if used

    return ParseDict(card, pb.AgentCard(), ignore_unknown_fields=True)


async def show(came: Came, shown: Paper, *, public: bool) -> None:
    """Answer with it, or say that it is as the client knows it."""
    known = _knows(came.headers.get(b"if-none-match", b""), shown.tag)
    status, told = (304, ()) if known else (200, _told(shown))
    kept = (b"cache-control", _PUBLIC if public else _PRIVATE)
    headers = [*told, (b"etag", shown.tag), kept, *_HEAD, *came.left()]
    send, silent = came.begin(status), known or came.method == "HEAD"
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if silent else shown.body})


def _told(shown: Paper) -> tuple[tuple[bytes, bytes], ...]:
    return (b"content-type", JSON), (b"content-length", b"%d" % len(shown.body))


def _knows(tags: bytes, tag: bytes) -> bool:
    known = {one.strip().removeprefix(b"W/") for one in tags.split(b",")}
    return tag in known or b"*" in known
