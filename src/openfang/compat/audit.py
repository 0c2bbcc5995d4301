"""The seed's audit logger: handlers that read behind the log."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from openfang.core.events import AuditEvent
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.app.sinks import Sinks
    from openfang.core.ports import AuditSink

__all__ = ["AuditEvent", "AuditLogger", "audit_logger"]


@dataclass(slots=True)
class AuditLogger:
    """Hands every event of the house in use to its handlers: at least once, in order."""

    _handlers: dict[str, AuditSink] = field(init=False, default_factory=dict[str, "AuditSink"])
    _sinks: Sinks | None = field(init=False, default=None)

    def register_handler(self, handler: AuditSink, *, name: str = "") -> None:
        """Add a handler: an object with `async handle_audit_event(event)`.

        Its place in the log is kept under `name`, else under the name of its class, so that it
        goes on where it stopped. A name that is new to the log gets all of it.
        """
        free = self._free(name or f"{type(handler).__module__}.{type(handler).__qualname__}")
        self._handlers[free] = handler
        if self._sinks is not None:
            self._sinks.register(free, handler)

    @property
    def handlers(self) -> tuple[AuditSink, ...]:
        """Those that are registered now."""
        return tuple(self._handlers.values())

    def remove_handler(self, handler: AuditSink) -> None:
        """Take a handler away; its place in the log is kept."""
        names = [name for name, known in self._handlers.items() if known is handler]
        for name in names:
            del self._handlers[name]
            if self._sinks is not None:
                self._sinks.remove(name)

    def _free(self, name: str) -> str:
        taken = sum(known.split("#")[0] == f"handler:{name}" for known in self._handlers)
        return f"handler:{name}#{taken + 1}" if taken else f"handler:{name}"

    @asynccontextmanager
    async def serving(self, sinks: Sinks) -> AsyncGenerator[None]:
        """Let the handlers read behind this log meanwhile, and once more at the end."""
        self._sinks = sinks
        for name, handler in self._handlers.items():
            sinks.register(name, handler)
        try:
            yield
        finally:
            await sinks.close()
            for name in self._handlers:
                sinks.remove(name)
            self._sinks = None


audit_logger = AuditLogger()
