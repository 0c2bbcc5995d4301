"""The schedules of a node as its built-in tools use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openfang.app.schedules.shown import schedule_body
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openfang.app.parts import Parts
    from openfang.app.schedules.book import Book
    from openfang.core.calls import Admitted


@dataclass(frozen=True, slots=True)
class Family:
    """What a call does with schedules, told as people read it."""

    parts: Parts
    book: Book

    async def create(self, admitted: Admitted) -> Mapping[str, Any]:
        """Make one as the arguments say."""
        call = admitted.call
        made = await self.book.create(call, admitted.labels, call.arguments)
        return await schedule_body(self.parts, made)

    async def list(self, admitted: Admitted) -> Sequence[Mapping[str, Any]]:
        """List those of whoever calls."""
        return [
            await schedule_body(self.parts, one) for one in await self.book.of_call(admitted.call)
        ]

    async def delete(self, admitted: Admitted) -> Mapping[str, Any]:
        """Delete one of those."""
        call = admitted.call
        gone = await self.book.delete_of_call(call, str(call.arguments["id"]))
        return await schedule_body(self.parts, gone)
