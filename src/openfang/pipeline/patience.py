"""A client that is asked in the middle of a call: the call's own time does not run meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from openfang.core.clients import Client
    from openfang.core.deadline import Deadline
    from openfang.core.results import Result
    from openfang.pipeline.slot import Slot


@dataclass(frozen=True, slots=True)
class Patient:
    """The client of a call that has so long to run, in a slot if it needs one."""

    client: Client
    deadline: Deadline
    slot: Slot | None = None

    @property
    def key(self) -> str:
        """Whose client it is."""
        return self.client.key

    @property
    def connection(self) -> str:
        """Which of that key's it is."""
        return self.client.connection

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it says it can do."""
        return self.client.capabilities

    @property
    def level(self) -> str:
        """The least severe messages that it wants to hear."""
        return self.client.level

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

    def together(self, count: int) -> Callable[[], None]:
        """Announce questions."""
        return self.client.together(count)

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something."""
        self.client.tell(method, params)
