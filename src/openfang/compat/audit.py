"""The seed's audit logger: handlers that read behind the log."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from openfang.app.sinks import Sinks
from openfang.core.events import AuditEvent
from openfang.storage.state import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.app.build import Parts
    from openfang.core.ports import AuditSink

__all__ = ["AuditEvent", "AuditLogger", "audit_logger"]

_POLL_SECONDS = 0.05
_LAST_TRIES = 3
_LAST_SECONDS = 5.0


@dataclass(slots=True)
class AuditLogger:
    """Hands every event of the house in use to its handlers: at least once, in order."""

    _handlers: dict[str, AuditSink] = field(init=False, default_factory=dict[str, "AuditSink"])

    def register_handler(self, handler: AuditSink, *, name: str = "") -> None:
        """Add a handler: an object with `async handle_audit_event(event)`.

        Its place in the log is kept under `name`, else under the name of its class, so that it
        goes on where it stopped. A name that is new to the log gets all of it.
        """
        name = name or f"{type(handler).__module__}.{type(handler).__qualname__}"
        self._handlers[self._free(name)] = handler

    @property
    def handlers(self) -> tuple[AuditSink, ...]:
        """Those that are registered now."""
        return tuple(self._handlers.values())

    def remove_handler(self, handler: AuditSink) -> None:
        """Take a handler away; its place in the log is kept."""
        names = [name for name, known in self._handlers.items() if known is handler]
        for name in names:
            del self._handlers[name]

    def _free(self, name: str) -> str:
        taken = sum(known.split("#")[0] == f"handler:{name}" for known in self._handlers)
        return f"handler:{name}#{taken + 1}" if taken else f"handler:{name}"

    @asynccontextmanager
    async def serving(self, parts: Parts) -> AsyncGenerator[None]:
        """Feed the handlers from this log meanwhile, and once more at the end."""
        failure: Exception | None = None
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._feed, parts)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below, outside the group
                failure = error
            finally:
                beside.cancel_scope.cancel()
        await self._pass_on_the_rest(parts)
        if failure is not None:
            raise failure

    async def _feed(self, parts: Parts) -> None:
        while True:
            if self._behind(parts):
                await self._pass_on(parts)
            await anyio.sleep(_POLL_SECONDS)

    async def _pass_on_the_rest(self, parts: Parts) -> None:
        """What a handler does not take now waits until it is registered again."""
        with anyio.move_on_after(_LAST_SECONDS):
            for _ in range(_LAST_TRIES):
                if not self._behind(parts):
                    return
                await self._pass_on(parts)
                await anyio.sleep(_POLL_SECONDS)

    async def _pass_on(self, parts: Parts) -> None:
        await Sinks(parts, dict(self._handlers)).drain()

    def _behind(self, parts: Parts) -> bool:
        settings, head = Settings(parts.database), parts.writer.head.seq
        return any(int(settings.get(f"sink:{name}") or 0) < head for name in self._handlers)


audit_logger = AuditLogger()
