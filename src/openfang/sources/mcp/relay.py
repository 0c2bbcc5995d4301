"""Takes what a server asks and says on its own to the clients of its calls.

A question is a call like any other: of `client:{key}:{method}`, by `mcp:{server}` (C1.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import orjson

from openfang.core.clients import Attended, Deputy
from openfang.core.errors import CallFailed, CallRefused
from openfang.core.ids import tool_id
from openfang.core.values import dataclass
from openfang.protocols.mcp.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    RpcError,
)
from openfang.safety.sizes import MAX_ARGUMENTS
from openfang.sources.mcp.questions import (
    Unanswered,
    answer_of,
    check_offered,
    offered_by,
    prepared,
    question_call,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from openfang.core.calls import Call
    from openfang.core.results import Result
    from openfang.protocols.mcp.results import Question
    from openfang.sources.mcp.errand import ClientErrand
    from openfang.sources.mcp.spec import ServerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """One server's. `known` hears of each client before it is asked for the first time.

    `alive` and `said` hear that the server works, and what it says.
    """

    spec: ServerSpec
    invoke: Callable[[Call], Awaitable[Result]]
    known: Callable[[str], None]
    clean: Callable[[dict[str, Any]], dict[str, Any]]
    alive: Callable[[], None]
    said: Callable[[Mapping[str, Any]], None]

    async def ask(
        self, errand: ClientErrand, method: str, params: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Put one question, for as long as it takes. Raises `Unanswered`."""
        return await self._put(errand, errand.client, method, params)

    @property
    def _asker(self) -> str:
        return tool_id(self.spec.kind, self.spec.name)

    async def ask_all(
        self, errand: ClientErrand, questions: Sequence[Question]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Put several side by side; the first that is not answered ends the others."""
        answers: dict[str, Mapping[str, Any]] = {}
        failures: list[RpcError] = []
        missed = errand.client.together(len(questions))

        async def put(question: Question) -> None:
            client = _Announced(errand.client, question.key)
            try:
                answers[question.key] = await self._put(
                    errand, client, question.method, question.params
                )
            except RpcError as failure:
                failures.append(failure)
                group.cancel_scope.cancel()
            finally:
                if not client.reached:
                    missed()

        async with anyio.create_task_group() as group:
            for question in questions:
                group.start_soon(put, question)
        if failures:
            raise failures[0]
        return answers

    async def _put(
        self, errand: ClientErrand, client: Attended, method: str, params: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if len(orjson.dumps(params)) > MAX_ARGUMENTS:
            raise Unanswered(INVALID_PARAMS, f"The question is larger than {MAX_ARGUMENTS} bytes")
        asked = self.clean(prepared(method, params))
        check_offered(method, asked, offered_by(client, self.spec))
        self.known(client.key)
        call = question_call(self._asker, errand.admitted, client, method, asked)
        try:
            with errand.patience.held():
                result = await self.invoke(call)
        except CallRefused as refusal:
            raise Unanswered(INVALID_REQUEST, refusal.message) from refusal
        except CallFailed as failure:
            raise Unanswered(INTERNAL_ERROR, failure.message) from failure
        return answer_of(method, asked, result)


@dataclass(slots=True, eq=False)
class _Announced(Deputy[Attended]):
    """A client that was told to expect a question of this name; `reached` once that was put."""

    name: str
    reached: bool = False

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> Result:
        self.reached = True
        return await self.client.ask(method, params, name or self.name)

    def held(self) -> AbstractContextManager[None]:
        return self.client.held()
