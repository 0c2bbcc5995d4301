"""One request and its response, and what becomes of an app that fails."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from openfang.host.refusals import INTERNAL, STOPPING, Refusal

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

LOG: Final = logging.getLogger("openfang.server")


class Exchange(RequestResponseCycle):
    """Runs the app for one request. `disconnected` means that nobody listens to it any more."""

    async def run_asgi(self, app: ASGI3Application) -> None:
        """Run the app, and answer in its place when it does not."""
        try:
            await app(self.scope, self.receive, self.send)
        except asyncio.CancelledError as error:
            if not _is_being_cancelled():
                self._failed(error)
                return
            self._give_up(STOPPING)
            raise
        except Exception as error:  # noqa: BLE001 - other people's code
            self._failed(error)
        else:
            self._ended()

    def refuse(self, refusal: Refusal) -> None:
        """Answer in the app's place, for the last time on this connection."""
        self.response_started = self.response_complete = True
        self.keep_alive = False
        self.message_event.set()
        with_body = self.scope["method"] != "HEAD"
        self.transport.write(refusal.answer(self.default_headers, with_body=with_body))
        self.transport.close()
        self.on_response()

    def _failed(self, error: BaseException) -> None:
        if self.disconnected:
            kind = type(error).__name__
            LOG.info("%s: the client had gone when the app raised %s", self._name(), kind)
            return
        LOG.error("%s: the app failed", self._name(), exc_info=error)
        self._give_up(INTERNAL)

    def _ended(self) -> None:
        if not self.response_complete and not self.disconnected:
            LOG.error("%s: the app ended without an answer", self._name())
            self._give_up(INTERNAL)

    def _give_up(self, refusal: Refusal) -> None:
        """Tell the client, or cut an answer that has begun, so that it is not taken for whole."""
        if self.response_complete or self.disconnected:
            return
        if self.response_started:
            self.transport.close()
        else:
            self.refuse(refusal)

    def _name(self) -> str:
        return f"{self.scope['method']} {self.scope['raw_path']!r}"


def _is_being_cancelled() -> bool:
    """Whether somebody cancels this request, and not the app something of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
