"""Whether this node may take tasks from queues, as its membership says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from openfang.app.cluster.members import Members


@dataclass(frozen=True, slots=True)
class Standing:
    """This node among the others; one that drains or is cut off takes nothing."""

    members: Members

    @property
    def may_take(self) -> bool:
        """Whether it may take tasks."""
        return not self.members.draining and not self.members.cut

    @property
    def cut(self) -> bool:
        """Whether it is out of reach, and what it has taken is not its own any more."""
        return self.members.cut

    def on_change(self, hear: Callable[[], None]) -> None:
        """Hear that any of it is another by now."""

        async def back() -> None:
            hear()

        self.members.on_cut(hear)
        self.members.on_drain(hear)
        self.members.on_back(back)

    def on_gone(self, hear: Callable[[str], Awaitable[None]]) -> None:
        """Hear of another node that is dead."""
        self.members.on_gone(hear)
