"""Calls that wait for a person, here: one event for each question, and one look for all of them."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Final

import anyio

from openfang.core.calls import FOREVER, Role
from openfang.core.errors import GuardTripped, HomeError
from openfang.core.values import dataclass
from openfang.storage.units import APPROVALS

if TYPE_CHECKING:
    from collections.abc import Generator

    from openfang.core.calls import Call
    from openfang.storage.approvals import ApprovalStore
    from openfang.storage.ports import Storage

_log = logging.getLogger("openfang.approvals")
# Only what another process answered is found by looking, and only while somebody waits.
_LOOK_SECONDS: Final = 1.0
_MOST_OF_ONE: Final = 20


@dataclass(slots=True)
class _Waited:
    answered: anyio.Event = field(default_factory=anyio.Event)
    count: int = 0


@dataclass(slots=True)
class Waits:
    """Who waits for which answer. `most` connections may be held by those who do."""

    store: ApprovalStore
    most: int = 250
    _of: dict[str, _Waited] = field(init=False, default_factory=dict[str, _Waited])
    _holding: Counter[str] = field(init=False, default_factory=Counter[str])
    _some: anyio.Event = field(init=False, default_factory=anyio.Event)
    _told: anyio.Event = field(init=False, default_factory=anyio.Event)
    ended: bool = field(init=False, default=False)

    def __len__(self) -> int:
        return self._holding.total()

    @contextmanager
    def place(self, call: Call) -> Generator[None]:
        """Count a call whose caller's connection is held; who has too many is refused."""
        caller = call.caller
        if call.patience <= 0 or call.patience == FOREVER or self.ended:
            yield
            return
        full = len(self) >= self.most and caller.role is not Role.ADMIN
        if full or self._holding[caller.id] >= _MOST_OF_ONE:
            raise _too_many(caller.id, self._holding[caller.id])
        self._holding[caller.id] += 1
        try:
            yield
        finally:
            self._holding[caller.id] -= 1
            self._holding += Counter()  # whoever has none waiting is forgotten

    @contextmanager
    def of(self, question_id: str) -> Generator[anyio.Event]:
        """Give what is set when the question is answered, or when nobody is to wait any more."""
        waited = self._of.setdefault(question_id, _Waited())
        waited.count += 1
        self._some.set()
        if self.ended:
            waited.answered.set()
        try:
            yield waited.answered
        finally:
            waited.count -= 1
            if not waited.count:
                self._of.pop(question_id, None)

    def tell(self, question_id: str) -> None:
        """Wake whoever waits for this answer."""
        if waited := self._of.get(question_id):
            waited.answered.set()

    def listen(self, storage: Storage) -> None:
        """Hear at once what was answered at other nodes, where there are any."""
        storage.on(APPROVALS, self._hear)

    def _hear(self, question_id: str) -> None:
        if question_id:
            self.tell(question_id)
        else:
            self._told.set()

    def end(self) -> None:
        """Let nobody wait from now on: the node is ending."""
        self.ended = True
        for waited in self._of.values():
            waited.answered.set()

    async def watch(self) -> None:
        """Find what other processes answered, by one query for all, until cancelled."""
        while True:
            await self._some.wait()
            with anyio.move_on_after(_LOOK_SECONDS):
                await self._told.wait()
            self._told = anyio.Event()
            await self._look()
            if not self._of:
                self._some = anyio.Event()

    async def _look(self) -> None:
        try:
            for question_id in await self.store.answered([*self._of]):
                self.tell(question_id)
        except HomeError as error:  # it is looked at again
            _log.warning("What others answered cannot be seen: %s", error.message)


def _too_many(caller: str, waiting: int) -> GuardTripped:
    return GuardTripped(
        f"{caller} has {waiting} calls that wait for a person; no more may wait now.",
        rule="too_many_waiting",
        way_out="call without waiting (Prefer: wait), and again when the question is answered",
    )
