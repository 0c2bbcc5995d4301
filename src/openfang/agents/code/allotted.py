"""How long a run may still take: from the moment it was wanted, and not while a person is asked."""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator


class Allotted:
    """The time of one run. What it limits is ended when there is none left."""

    __slots__ = ("_held", "_left", "_scope", "_until")

    def __init__(self, seconds: float | None) -> None:
        self._until = inf if seconds is None else anyio.current_time() + seconds
        self._left = 0.0
        self._held = 0
        self._scope: anyio.CancelScope | None = None

    def limited(self) -> anyio.CancelScope:
        """Give a scope that is left when the time is over."""
        self._scope = anyio.CancelScope(deadline=self._until)
        return self._scope

    @contextmanager
    def held(self) -> Generator[None]:
        """Let time pass uncounted."""
        if not self._held:
            self._left = self._until - anyio.current_time()
            self._set(inf)
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._set(anyio.current_time() + self._left)

    def _set(self, until: float) -> None:
        self._until = until
        if self._scope is not None:
            self._scope.deadline = until
