"""A client that is asked in the middle of a call: the call's own time does not run meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openfang.core.clients import Client, Deputy
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from openfang.core.deadline import Deadline
    from openfang.core.results import Result
    from openfang.pipeline.slot import Slot


@dataclass(slots=True, eq=False)
class Patient(Deputy[Client]):
    """The client of a call that has so long to run, in a slot if it needs one."""

    deadline: Deadline
    slot: Slot | None = None

    @contextmanager
    def held(self) -> Generator[None]:
        """Stop the clock, and that of the call this one belongs to."""
        with self.deadline.held():
            if isinstance(self.client, Patient):
                with self.client.held():
                    yield
            else:
                yield

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        """Ask, and stop the clock until there is an answer; others may have the slot meanwhile."""
        with self.deadline.held():
            if self.slot is None:
                return await self.client.ask(method, params, name)
            async with self.slot.lent():
                return await self.client.ask(method, params, name)
