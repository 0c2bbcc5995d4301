"""Calls that wait for their client in the modern era: a question is a result, its answer a retry.

The call itself goes on waiting here. What the client is given is a state that names the call, bound
to caller, method, arguments, node and time; whoever brings it back gets the next question, or the
end.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from openfang.edges.mcp.client import ANSWERED, Gathers
from openfang.edges.mcp.state import State, digest, seal, unseal
from openfang.protocols.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from openfang.core.ports import Clock
    from openfang.edges.mcp.context import Context
    from openfang.edges.mcp.handler import Answers
    from openfang.edges.mcp.ports import Link

WAIT_SECONDS: Final = 600
MOST: Final = 2000
MOST_OF_ONE: Final = 100
_SECOND: Final = 1_000_000_000


class Parked:
    """The calls that wait. They end with the node, or when nobody comes back for them."""

    def __init__(self, secret: bytes, clock: Clock, node: str) -> None:
        self._secret = secret
        self._clock = clock
        self._node = node
        self._waiting: dict[str, _Waiting] = {}

    async def answer(
        self, method: str, answers: Answers, params: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        """Begin a call, or go on with one; until it ends or wants to know something."""
        resumed, can = "requestState" in params, context.capabilities
        if not resumed and not (can and any(name in can for name in ANSWERED)):
            return await answers(params, context)
        subject = _subject(method, params, context)
        if resumed:
            return await self._resumed(params, context, subject)
        waiting = _Waiting(self, context, subject, _responses(params))
        waiting.begin(answers, params, context)
        return await self._turn(waiting, context.link)

    def elsewhere(self, method: str, params: Mapping[str, Any], context: Context) -> str:
        """Name the node on which the call waits that a request goes on with, if it is another."""
        state = params.get("requestState")
        if not isinstance(state, str):
            return ""
        named = unseal(self._secret, state, _subject(method, params, context))
        return "" if named is None or named.node == self._node else named.node

    def may_park(self, waiting: _Waiting) -> bool:
        """Take one more call in, if there is room."""
        self._waiting.pop(waiting.id, None)
        own = sum(other.caller == waiting.caller for other in self._waiting.values())
        if len(self._waiting) >= MOST or own >= MOST_OF_ONE:
            return False
        self._waiting[waiting.id] = waiting
        return True

    async def _resumed(
        self, params: Mapping[str, Any], context: Context, subject: bytes
    ) -> dict[str, Any]:
        waiting = self._found(params.get("requestState"), subject)
        if not waiting.take(_responses(params)):
            return self._question(waiting)
        return await self._turn(waiting, context.link)

    def _found(self, state: object, subject: bytes) -> _Waiting:
        named = unseal(self._secret, state, subject) if isinstance(state, str) else None
        if named is None:
            raise RpcError(INVALID_PARAMS, "requestState is none of ours, or of another request")
        waiting = self._waiting.get(named.call)
        if waiting is None or self._clock.time_ns() >= named.until or waiting.attended:
            raise over()
        return waiting

    async def _turn(self, waiting: _Waiting, link: Link) -> dict[str, Any]:
        """Let it go on until it ends, or asks."""
        try:
            with waiting.attended_by(link):
                await waiting.moved()
        except asyncio.CancelledError:
            self._waiting.pop(waiting.id, None)
            raise
        if not waiting.done:
            return self._question(waiting)
        self._waiting.pop(waiting.id, None)
        return waiting.result()

    def _question(self, waiting: _Waiting) -> dict[str, Any]:
        until = self._clock.time_ns() + WAIT_SECONDS * _SECOND
        waiting.expire_after(WAIT_SECONDS, self._forget)
        return {
            "resultType": "input_required",
            "inputRequests": waiting.asked(),
            "requestState": seal(
                self._secret, State(waiting.id, until, self._node), waiting.subject
            ),
        }

    def _forget(self, waiting: _Waiting) -> None:
        self._waiting.pop(waiting.id, None)
        waiting.cancel()

    def left(self, run: str) -> None:
        """End those whose client has hung up for good."""
        for waiting in list(self._waiting.values()):
            if waiting.run == run:
                self._forget(waiting)

    def close(self) -> None:
        """End them all."""
        for waiting in list(self._waiting.values()):
            self._forget(waiting)


def _subject(method: str, params: Mapping[str, Any], context: Context) -> bytes:
    offer = context.offer
    place = f"{offer.place.toolset}/{offer.place.agent}"
    return digest(offer.caller.id, place, method, params)


def over() -> RpcError:
    """Say that nobody works on it any more."""
    return RpcError(INVALID_PARAMS, "This request is over: make it anew")


def _responses(params: Mapping[str, Any]) -> dict[str, Any]:
    responses = params.get("inputResponses")
    return dict(cast("dict[str, Any]", responses)) if isinstance(responses, dict) else {}


class _Question:
    """One thing that a call wants to know."""

    __slots__ = ("answer", "method", "params")

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self.method = method
        self.params = params
        self.answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()


class _Waiting(Gathers):
    """One call in a task of its own, and the link of whoever asked for it last."""

    open = True

    def __init__(
        self, parked: Parked, context: Context, subject: bytes, given: dict[str, Any]
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self.caller = context.offer.caller.id
        self.run = context.run
        self.subject = subject
        self._parked = parked
        self._given = given
        self._link: Link | None = None
        self._questions: dict[str, _Question] = {}
        self._count = 0
        self._announced = 0
        self._moved = asyncio.Event()
        self._task: asyncio.Future[dict[str, Any]] | None = None
        self._expiry: asyncio.TimerHandle | None = None

    # The call's side: a link that outlives its request

    def begin(self, answers: Answers, params: Mapping[str, Any], context: Context) -> None:
        """Start the call."""
        task = asyncio.ensure_future(answers(params, replace(context, link=self)))
        task.add_done_callback(self._ended)
        self._task = task

    def _ended(self, task: asyncio.Future[dict[str, Any]]) -> None:
        if not task.cancelled():
            task.exception()  # seen, even when nobody comes back for it
        self._moved.set()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell whoever is listening now."""
        if self._link is not None:
            self._link.notify(method, params)

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put a question that has no name."""
        return await self.put(method, params, "")

    async def put(self, method: str, params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Put a question, once all that were announced are there, unless it is answered already."""
        early = self._given.pop(name, None)
        if isinstance(early, dict):
            self._arrived()
            return cast("dict[str, Any]", early)
        if not self._questions and not self._parked.may_park(self):
            raise RpcError(INTERNAL_ERROR, "Too many calls wait for answers already")
        self._count += 1
        taken = not name or name in self._questions
        key, question = f"question-{self._count}" if taken else name, _Question(method, params)
        self._questions[key] = question
        self._arrived()
        try:
            return await question.answer
        finally:
            self._questions.pop(key, None)

    def together(self, count: int) -> Callable[[], None]:
        """Wait for so many questions before any is put."""
        self._announced += count
        return self._arrived

    def _arrived(self) -> None:
        self._announced = max(0, self._announced - 1)
        if not self._announced and self._questions:
            self._moved.set()

    # The side of whoever comes for it

    @property
    def attended(self) -> bool:
        """Whether somebody waits for it."""
        return self._link is not None

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task is not None and self._task.done()

    @contextmanager
    def attended_by(self, link: Link) -> Generator[None]:
        """Let this link hear what is told."""
        self._link = link
        if self._expiry is not None:
            self._expiry.cancel()
        try:
            yield
        finally:
            self._link = None

    async def moved(self) -> None:
        """Wait until it ends or asks; who goes away meanwhile cancels it."""
        try:
            await self._moved.wait()
        except asyncio.CancelledError:
            self.cancel()
            if self._task is not None:
                await asyncio.wait([self._task])
            raise
        self._moved.clear()

    def result(self) -> dict[str, Any]:
        """What it ended with."""
        assert self._task is not None  # noqa: S101 - it has ended
        if self._task.cancelled():
            raise over()
        return self._task.result()

    def asked(self) -> dict[str, Any]:
        """All questions that are open, as the wire has them."""
        return {
            key: {"method": question.method, "params": dict(question.params)}
            for key, question in self._questions.items()
        }

    def take(self, responses: Mapping[str, Any]) -> bool:
        """Hand answers over, and say whether none is missing; what nobody asked for is ignored."""
        for key in [key for key in self._questions if isinstance(responses.get(key), dict)]:
            question = self._questions.pop(key)
            if not question.answer.done():
                question.answer.set_result(responses[key])
        if self._questions:
            return False
        if not self.done:
            self._moved.clear()
        return True

    def expire_after(self, seconds: float, forget: Callable[[_Waiting], None]) -> None:
        """Give up unless somebody comes back."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(seconds, forget, self)

    def cancel(self) -> None:
        """End the call."""
        if self._task is not None:
            self._task.cancel()
