"""The first dialect: JSON-RPC to the card's address with an envelope, else the bare paths below."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from openfang.core.errors import SourceFailed
from openfang.core.ids import new_id
from openfang.host.chatter import legible
from openfang.sources.a2a.dialect import NotOffered
from openfang.sources.a2a.seed_words import is_task, params_of, task_of
from openfang.sources.a2a.wire import SECONDS, NoAgent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.core.tasks import Sent
    from openfang.sources.a2a.card import Card
    from openfang.sources.a2a.dialect import Headers, Hear
    from openfang.sources.a2a.following import PeerTask
    from openfang.sources.a2a.wire import Wire

_NOT_SERVED: Final = frozenset({404, 405, 501})
_NO_METHOD: Final = -32601
_SHOWN: Final = 500


class _NotHere(Exception):  # noqa: N818 - it reads as what it is
    """Nobody speaks JSON-RPC at the card's address."""


class Seed:
    """A peer of the first days. Whether it has the envelope shows at the first request."""

    def __init__(self, wire: Wire, card: Card) -> None:
        self._wire = wire
        self._name = card.name
        self._url = card.interfaces[0].url.rstrip("/")
        self._bare = False
        wire.check(self._url)

    async def send(self, sent: Sent, headers: Headers, hear: Hear) -> None:
        """Send a message. It is answered when the work is done: that may take its time."""
        params = params_of(sent)
        found = await self._ask("tasks/send", params, "POST", "tasks/send", headers, seconds=None)
        hear(self._task(found))

    async def watch(self, task_id: str, headers: Headers, hear: Hear) -> None:
        """Refuse: there are no streams."""
        del task_id, headers, hear
        raise NotOffered(f"{self._name} does not stream")

    async def get(self, task_id: str, headers: Headers) -> PeerTask:
        """Read a task."""
        path = f"tasks/{quote(task_id, safe='')}"
        return self._task(await self._ask("tasks/get", {"id": task_id}, "GET", path, headers))

    async def cancel(self, task_id: str, headers: Headers) -> PeerTask:
        """End a task."""
        path = f"tasks/{quote(task_id, safe='')}/cancel"
        return self._task(await self._ask("tasks/cancel", {"id": task_id}, "POST", path, headers))

    async def _ask(  # noqa: PLR0913 - the two spellings of one request
        self,
        method: str,
        params: Mapping[str, Any],
        verb: str,
        path: str,
        headers: Headers,
        *,
        seconds: float | None = SECONDS,
    ) -> object:
        body = {"jsonrpc": "2.0", "id": new_id("rpc"), "method": method, "params": params}
        if not self._bare:
            with suppress(_NotHere):  # or not yet: what it has shows below
                return await self._enveloped(body, headers, seconds)
        sent = None if verb == "GET" else body
        status, found, _ = await self._wire.ask(
            verb, f"{self._url}/{path}", headers, sent, seconds=seconds
        )
        # A run that failed is a task all the same, whatever status it came with.
        if not is_task(found):
            raise self._refused(status, found)
        self._bare = True
        return found

    async def _enveloped(
        self, body: Mapping[str, Any], headers: Headers, seconds: float | None
    ) -> object:
        try:
            status, found, _ = await self._wire.ask(
                "POST", self._url, headers, body, seconds=seconds
            )
        except NoAgent as wrong:
            if wrong.status in _NOT_SERVED:
                raise _NotHere from wrong
            raise
        match found:
            case {"result": object() as result}:
                return result
            case {"error": {"code": int(code)}} if code == _NO_METHOD:
                raise _NotHere
            case _ if is_task(found):
                return found
            case {"jsonrpc": str(), "error": object()}:
                raise self._refused(status, found)
            case _ if status in _NOT_SERVED:
                raise _NotHere
            case _:
                raise self._refused(status, found)

    def _task(self, found: object) -> PeerTask:
        if not is_task(found):
            raise SourceFailed(f"{self._name} answered with no task")
        try:
            return task_of(found)
        except SourceFailed as wrong:
            raise SourceFailed(f"{self._name} answered wrongly: {wrong.message}") from wrong

    def _refused(self, status: int, found: object) -> SourceFailed:
        match found:
            case {"error": {"message": str(why)}} | {"error": str(why)} | {"detail": str(why)}:
                said = f": {legible(why)[:_SHOWN]}"
            case _:
                said = ", and with no task"
        return SourceFailed(f"{self._name} answered with status {status}{said}")
