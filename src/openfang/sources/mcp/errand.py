"""One call under way at a server: what the server says and asks about it, and who hears of that."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import orjson
from anyio import CancelScope, current_time

from openfang.protocols.mcp.errors import INVALID_REQUEST, METHOD_NOT_FOUND
from openfang.protocols.mcp.levels import severity
from openfang.sources.mcp.adapter import progress_of
from openfang.sources.mcp.questions import Unanswered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from openfang.core.calls import Admitted
    from openfang.core.clients import Attended
    from openfang.core.deadline import Deadline
    from openfang.protocols.mcp.results import Question
    from openfang.sources.mcp.relay import Relay
    from openfang.sources.mcp.turns import Turns

MESSAGE: Final = "notifications/message"
_PROGRESS: Final = "notifications/progress"
_MOST_QUESTIONS: Final = 100
_MOST_A_SECOND: Final = 200
_LARGEST_NOTE: Final = 65_536


class PlainErrand:
    """A call that has no client. `connection` is that of the client of one that has."""

    __slots__ = ("_relay", "admitted", "patience")
    connection = ""

    def __init__(self, relay: Relay, admitted: Admitted, patience: Deadline) -> None:
        self._relay = relay
        self.admitted = admitted
        self.patience = patience

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass on what the server says of this call: it is at work on it."""
        self.patience.again()
        self._relay.alive()
        if method == _PROGRESS:
            if self.admitted.progress is not None:
                self.admitted.progress(progress_of(params))
        elif method == MESSAGE:
            self._relay.said(params)

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Refuse: there is nobody to ask."""
        del params
        raise Unanswered(METHOD_NOT_FOUND, f"This call has no client that could answer {method}")

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell nobody."""

    def held(self) -> AbstractContextManager[None]:
        """Let its time pass: there is nobody who could stop it."""
        return nullcontext()

    async def answers(self, questions: Sequence[Question]) -> Mapping[str, Mapping[str, Any]]:
        """Refuse the first."""
        return {one.key: await self.asked(one.method, one.params) for one in questions}


class ClientErrand(PlainErrand):
    """A call whose client is there."""

    __slots__ = ("_asked", "_open", "_second", "_told", "_turns", "client", "connection")

    def __init__(
        self,
        relay: Relay,
        admitted: Admitted,
        patience: Deadline,
        client: Attended,
        turns: Turns,
    ) -> None:
        super().__init__(relay, admitted, patience)
        self.client = client
        self.connection = client.connection
        self._turns = turns
        self._asked = self._second = self._told = 0
        self._open: set[CancelScope] = set()

    def told(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass it on to the client as well."""
        super().told(method, params)
        if method != _PROGRESS:
            self.tell(method, params)

    def held(self) -> AbstractContextManager[None]:
        """Let its time stand still."""
        return self.client.held()

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client: of messages those that it wants to hear, and no more than it can."""
        level = self.client.level
        if method == MESSAGE and (not level or severity(params.get("level")) < severity(level)):
            return
        if self._bearable() and len(orjson.dumps(params)) <= _LARGEST_NOTE:
            self.client.tell(method, self._relay.clean(dict(params)))

    def _bearable(self) -> bool:
        second = int(current_time())
        if second != self._second:
            self._second, self._told = second, 0
        self._told += 1
        return self._told <= _MOST_A_SECOND

    async def asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put a question to the client; it does not outlast the call."""
        self._count(1)
        with CancelScope() as scope:
            self._open.add(scope)
            try:
                async with self._aside():
                    return await self._relay.ask(self, method, params)
            finally:
                self._open.discard(scope)
        raise Unanswered(INVALID_REQUEST, f"The call that {method} belonged to has ended")

    async def answers(self, questions: Sequence[Question]) -> Mapping[str, Mapping[str, Any]]:
        """Put all questions of a result to the client, at once."""
        self._count(len(questions))
        async with self._aside():
            return await self._relay.ask_all(self, questions)

    @asynccontextmanager
    async def _aside(self) -> AsyncGenerator[None]:
        """Let time stand still, and others have their turn."""
        with self.patience.held(), self.held():
            async with self._turns.aside(self):
                yield

    def _count(self, questions: int) -> None:
        self._asked += questions
        if self._asked > _MOST_QUESTIONS:
            raise Unanswered(INVALID_REQUEST, f"One call asks {_MOST_QUESTIONS} questions at most")

    def end(self) -> None:
        """Take back what was asked and not answered."""
        for scope in self._open:
            scope.cancel()
