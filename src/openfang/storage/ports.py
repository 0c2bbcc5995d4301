"""What every database that keeps a home does for it: reads that are awaited, and units.

The stores beside this module are written against these ports alone. Errors are `HomeError`, in the
words of who owns the home; a unit that the tables refuse fails with `Conflict`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from openfang.core.errors import HomeError
from openfang.core.log import QUERY_ROWS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from anyio import CapacityLimiter

    from openfang.core.log import Table
    from openfang.storage.units import Fate, Head, Unit, Written

T = TypeVar("T")


class Unsure(HomeError):  # noqa: N818 - it reads as what it is
    """Nobody can tell whether a unit was kept: the connection broke in its commit."""


Dialect: TypeAlias = Literal["sqlite", "postgres"]
Hear: TypeAlias = Callable[[str], None]
"""Is told the subject of a notice; "" means that anything under its topic may have changed."""


class Reader(Protocol):
    """Answers queries. What was committed before one was asked is in its answer."""

    @property
    def dialect(self) -> Dialect:
        """Which SQL it reads, where that differs."""
        ...

    async def read(
        self, sql: str, parameters: Sequence[Any] = (), *, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one short query. With `most` it ends after the row that brings so many characters."""
        ...


Look: TypeAlias = Callable[[Reader], Coroutine[Any, Any, T]]
"""What is looked at aside. It awaits its reader and nothing else: it may run in a thread."""


class Storage(Reader, Protocol):
    """The database of a home, whichever it is."""

    async def aside(self, look: Look[T], turns: CapacityLimiter | None = None) -> T:
        """Look at much: nobody else's query waits for it, nor does the event loop.

        Those who share `turns` wait for each other; by default all who look aside do.
        """
        ...

    async def query(self, sql: str, *, limit: int = QUERY_ROWS) -> list[Table]:
        """Run queries of the operator's own: on the log alone, read-only, bounded."""
        ...

    def on(self, topic: str, hear: Hear) -> bool:
        """Hear, on the event loop, what any node tells by the notices of its units.

        False: here nobody tells, since there can be only one node. Whoever holds a copy of
        something reads it after this, not before; a notice may be lost, so it is looked at now and
        then all the same.
        """
        ...

    def tell(self, topic: str, subject: str) -> None:
        """Tell all nodes something that nothing is kept of; it comes in order, or not at all."""
        ...

    async def aclose(self) -> None:
        """Give it back."""
        ...


class Writes(Protocol):
    """The one writer of a node: units in, their places out, their records chained."""

    on_commit: Callable[[Head], None] | None

    @property
    def node(self) -> str:
        """Whose chain it writes."""
        ...

    @property
    def head(self) -> Head:
        """The last record this process knows of."""
        ...

    def commit(self, unit: Unit, fate: Fate | None = None) -> Written | None:
        """Commit without waiting, where that is possible; None means: submit it instead."""
        ...

    def submit(self, unit: Unit, fate: Fate | None = None) -> asyncio.Future[Written]:
        """Queue a unit. It is committed whether or not the caller goes on waiting.

        `fate` hears what became of it, even if nobody waits any more.
        """
        ...

    async def write(self, unit: Unit) -> Written:
        """Return where the unit's records stand once they would survive the process."""
        ...

    async def drain(self) -> None:
        """Wait until everything queued so far is durable or has failed."""
        ...

    async def aclose(self) -> None:
        """Give everything back; the queue must have been drained."""
        ...
