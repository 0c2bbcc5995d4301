"""The seam between a connection and what carries it, and how a carrier fails.

Lost                  no answer will come; the reason is a sentence
├── NotSpoken         it answered, but not in this transport's way: another may fit
├── AuthNeeded        it wants credentials, or better ones
├── Unmade            nobody was asked: to ask again does no harm
└── ProbeFatal        it ended because it was asked for `server/discover`
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from anyio.abc import TaskGroup

    from openfang.protocols.mcp.results import Question

Told: TypeAlias = Callable[[str, Mapping[str, Any]], None]
LOG: Final = logging.getLogger("openfang.mcp")


class Lost(Exception):  # noqa: N818 - it reads as what it is
    """The connection, or the one exchange, is gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class NotSpoken(Lost):
    """The server answered, but does not speak this transport."""


class ProbeFatal(Lost):
    """The server ended when it was asked which revisions it speaks: ask it `initialize` first."""


class Unmade(Lost):
    """Nothing was sent, or it was refused before anything came of it."""


class AuthNeeded(Lost):
    """The server wants credentials, or others."""

    def __init__(self, reason: str, *, way_out: str = "") -> None:
        super().__init__(reason)
        self.way_out = way_out


class Peer(Protocol):
    """What the other side of a connection may reach of us."""

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a request of the server's own, or raise `RpcError`."""
        ...

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Take a notification that belongs to no call."""
        ...


class Errand(Peer, Protocol):
    """The peer of one call of ours: it hears and answers what belongs to that call alone."""

    async def answers(self, questions: Sequence[Question]) -> Mapping[str, Mapping[str, Any]]:
        """Answer all questions of a result that needs input, each by its key; or `RpcError`."""
        ...


class Transport(Protocol):
    """One live connection."""

    @property
    def kind(self) -> str:
        """Its name among the transports."""
        ...

    @property
    def mirrors(self) -> bool:
        """Whether it has headers beside its messages, in which arguments can be mirrored."""
        ...

    @property
    def lost(self) -> anyio.Event:
        """Set when the connection is gone."""
        ...

    @property
    def reason(self) -> str:
        """Why it was lost; empty while it was not."""
        ...

    @property
    def heeded(self) -> bool:
        """Whether it may have been lost by what we said: whoever read nothing was not."""
        ...

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        errand: Errand | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask, and give the result as received. Raises `RpcError` or `Lost`.

        To cancel the waiting task cancels the request.
        """
        ...

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server something that it does not answer."""
        ...

    def speak(self, version: str) -> None:
        """Take note of the revision agreed on; empty before there is one."""
        ...

    def lose(self, reason: str) -> None:
        """Give it up: nothing more is asked, and nothing more is waited for."""
        ...

    def fence(self, check: Callable[[], None]) -> None:
        """Make no request any more for which this raises."""
        ...


def tell(told: Told, method: str, params: Mapping[str, Any]) -> None:
    """Pass a notification on; a listener that fails must not end the connection."""
    try:
        told(method, params)
    except Exception:
        LOG.exception("The listener for %s failed", method)


@asynccontextmanager
async def owned_tasks() -> AsyncGenerator[TaskGroup]:
    """Hold the tasks of one connection; an error of the body leaves as it was raised, in no group.

    They end with the body.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below
            raised = error
        tasks.cancel_scope.cancel()
    if raised is not None:
        raise raised
