"""What a dialect is to those who use it: a way to send, to watch, to read and to cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from openfang.core.errors import SourceFailed

if TYPE_CHECKING:
    from openfang.core.tasks import Sent
    from openfang.sources.a2a.following import Event, PeerTask

Hear: TypeAlias = "Callable[[Event], None]"
Headers: TypeAlias = Mapping[str, str]


class NotOffered(SourceFailed):
    """The peer's dialect has no such thing."""


class Dialect(Protocol):
    """How one peer is spoken to. Raises `SourceFailed`."""

    async def send(self, sent: Sent, headers: Headers, hear: Hear) -> None:
        """Send a message, and tell what comes back: at once, or until the peer hangs up."""
        ...

    async def watch(self, task_id: str, headers: Headers, hear: Hear) -> None:
        """Tell the task as it is, then all that happens to it, until the peer hangs up."""
        ...

    async def get(self, task_id: str, headers: Headers) -> PeerTask:
        """Read a task."""
        ...

    async def cancel(self, task_id: str, headers: Headers) -> PeerTask:
        """End a task."""
        ...
