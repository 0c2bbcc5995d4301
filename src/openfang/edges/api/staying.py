"""What may stay open for a caller: for how long, and how many streams at once."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from openfang.core.errors import GuardTripped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from openfang.core.calls import Caller
    from openfang.edges.api.mount import Came
    from openfang.edges.api.node import Node

Still: TypeAlias = "Callable[[], bool]"
_A_SHARE: Final = 2
_OF_ISSUER: Final = "oauth:"


def always() -> bool:
    """Say that a caller is in force whatever comes."""
    return True


def still_of_one(node: Node, caller: Caller, secret: str | None, edge: str) -> Still:
    """What says whether who asked would be let in again."""
    if secret is None:
        return lambda: caller == node.anybody()
    return node.still(caller, secret, edge)


def still_of(came: Came) -> Still:
    """What says whether that which a caller began may go on.

    An access token ends soon, by itself, and another takes its place: nobody has turned it away.
    """
    return always if came.caller.id.startswith(_OF_ISSUER) else came.still


def in_force(came: Came) -> bool:
    """Whether what this caller began may go on."""
    return still_of(came)()


class Streams:
    """Those that are open: not too many, and of these one caller may have a half."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of = Counter[str]()

    def __len__(self) -> int:
        return self._of.total()

    @contextmanager
    def one(self, caller: str) -> Generator[None]:
        """Let one more be open."""
        if len(self) >= self._most or self._of[caller] >= max(1, self._most // _A_SHARE):
            raise _too_many(caller, self._of[caller])
        self._of[caller] += 1
        try:
            yield
        finally:
            self._of[caller] -= 1
            self._of += Counter()  # whoever has none open is forgotten


def _too_many(caller: str, streams: int) -> GuardTripped:
    return GuardTripped(
        f"{caller} has {streams} streams open; no more may be opened now.",
        rule="too_many_streams",
        way_out="end a stream first, or ask from time to time",
    )
