"""What many want to know at the same time is found out once, for all of them."""

from __future__ import annotations

import asyncio
from dataclasses import field
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from openfang.core.errors import Rejected
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
LOOK_SECONDS = 5.0


@dataclass(slots=True)
class Shared(Generic[T]):
    """The first who asks looks; who comes meanwhile waits for what that one finds.

    Nobody waits for long: a database that does not answer in time is an error for all of them.
    """

    _under_way: dict[str, asyncio.Future[T]] = field(default_factory=dict[str, "asyncio.Future[T]"])

    async def look(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Find something out, or wait for whoever is at it."""
        while (theirs := self._under_way.get(what)) is not None:
            try:
                return await asyncio.shield(theirs)
            except asyncio.CancelledError:
                if not theirs.cancelled():
                    raise  # it is us who are to end
        return await self._first(what, work)

    async def _first(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        ours = self._under_way[what] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after(LOOK_SECONDS):
                found = await work()
        except Exception as error:
            said = _in_words(error)
            ours.set_exception(said)
            ours.exception()  # it may be that nobody else wants to know
            raise said from error
        except BaseException:
            ours.cancel()
            raise
        else:
            ours.set_result(found)
            return found
        finally:
            del self._under_way[what]


def _in_words(error: Exception) -> Exception:
    if not isinstance(error, TimeoutError):
        return error
    return Rejected(
        f"The keys cannot be looked up: the database has not answered for {LOOK_SECONDS:g} s.",
        status=503,
        rule="keys_unavailable",
        way_out="try again; the log of the node says why",
    )
