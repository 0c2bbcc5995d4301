"""What goes out to a client over a byte stream: answers, notifications, and questions of ours."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from openfang.core.ids import random_hex
from openfang.protocols.mcp.errors import INTERNAL_ERROR, RpcError
from openfang.protocols.mcp.framing import Framing, framed
from openfang.protocols.mcp.messages import Answer, Failure, notification, request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.protocols.mcp.messages import Id

_log = logging.getLogger("openfang.mcp")
_SPARED: Final = frozenset({"notifications/progress", "notifications/message"})


class Outlet:
    """The writing half of a connection. `framing` is how the client framed its last message.

    While `full` bytes wait for the client it is not told what can be spared; at `most` the
    connection ends.
    """

    def __init__(self, writer: asyncio.StreamWriter, *, full: int, most: int) -> None:
        self.framing = Framing.LINE
        self.open = True
        self._writer = writer
        self._full = full
        self._most = most
        self._questions: dict[Id, asyncio.Future[Mapping[str, Any]]] = {}
        # A client may answer a question of a connection that was lost: no two share their ids.
        self._name = random_hex(4)
        self._count = count(1)
        writer.transport.set_write_buffer_limits(high=full)

    async def room(self) -> None:
        """Wait until the client has taken most of what waits for it."""
        await self._writer.drain()

    def post(self, body: bytes, framing: Framing) -> None:
        """Send a message."""
        if self._writer.is_closing():
            return
        self._writer.write(framed(body, framing))
        if self._waiting > self._most:
            _log.warning("A client takes nothing: %d bytes wait for it", self._waiting)
            self.cut()

    def tell(self, method: str, params: Mapping[str, Any], framing: Framing | None = None) -> None:
        """Send a notification; of those that can be spared only what there is room for."""
        if method not in _SPARED or self._waiting < self._full:
            self.post(notification(method, params), framing or self.framing)

    async def ask(
        self, method: str, params: Mapping[str, Any], framing: Framing
    ) -> Mapping[str, Any]:
        """Put a question; whoever no longer wants the answer takes it back."""
        if not self.open:
            raise _gone()
        number = f"{self._name}-{next(self._count)}"
        answered = self._questions[number] = asyncio.get_running_loop().create_future()
        self.post(request(number, method, params), framing)
        try:
            return await answered
        except asyncio.CancelledError:
            reason = {"requestId": number, "reason": "What asked has ended"}
            self.tell("notifications/cancelled", reason, framing)
            raise
        finally:
            del self._questions[number]

    def settle(self, heard: Answer | Failure) -> bool:
        """Take the answer to a question; false if there is no such question."""
        question = self._questions.get(heard.id) if heard.id is not None else None
        if question is None or question.done():
            return False
        if isinstance(heard, Answer):
            question.set_result(heard.result)
        else:
            question.set_exception(heard.error)
        return True

    def forget(self) -> None:
        """Ask nothing more: the client can answer no longer."""
        self.open = False
        for number in list(self._questions):
            self.settle(Failure(number, _gone()))

    async def close(self) -> None:
        """Let the client take what waits for it, and hang up."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    def cut(self) -> None:
        """Hang up."""
        self._writer.transport.abort()

    @property
    def _waiting(self) -> int:
        return self._writer.transport.get_write_buffer_size()


def _gone() -> RpcError:
    return RpcError(INTERNAL_ERROR, "The client can be asked no longer")
