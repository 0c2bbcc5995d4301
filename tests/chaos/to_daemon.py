"""The daemon ends in the middle of calls, as it should or as it should not, and is begun anew."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, ClassVar

from tests.chaos.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.ledger import Seen
    from tests.chaos.node import Node


class Ended(Fault):
    """A signal ends it; whoever calls meanwhile is not answered, or told so."""

    kinds = frozenset({"unanswered", "stopping", "-32603"})
    number: ClassVar[signal.Signals]
    code: ClassVar[int]

    def __init__(self, node: Node) -> None:
        self._node = node

    def begin(self) -> None:
        assert self._node.end(self.number) == self.code

    def felt(self, seen: Sequence[Seen]) -> bool:
        return any(one.answer.kind == "unanswered" for one in seen)

    def end(self) -> None:
        self._node.start()
        self._node.wait_until_healthy()


class Terminated(Ended):
    """SIGTERM: what has begun is answered first."""

    name = "SIGTERM of the daemon, and a start"
    number = signal.SIGTERM
    code = 0


class Slain(Ended):
    """`kill -9`: whatever has begun is cut off."""

    name = "kill -9 of the daemon, and a start"
    number = signal.SIGKILL
    code = -signal.SIGKILL
