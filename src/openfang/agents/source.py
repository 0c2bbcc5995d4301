"""An agent as a tool: a message in, an answer out. Who waits for whom, and how a turn ends."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.agents.attached import in_words, pictures, whole
from openfang.agents.given import MORE, foreign, joined, parted, read_given
from openfang.agents.history import resumed
from openfang.agents.origin import read_origin, write_origin
from openfang.agents.ports import Busy, Came
from openfang.agents.queues import Queues, lending
from openfang.agents.spec import Mind
from openfang.agents.turn import Turn
from openfang.core.agents import Ended, Ending, Message, Speaker
from openfang.core.artifacts import artifact_parts
from openfang.core.errors import OpenFangError, SourceFailed
from openfang.core.ids import Kind, new_id
from openfang.core.results import Result, text_part
from openfang.core.tasks import ANSWER
from openfang.core.tools import Risk, Tool, Trust

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from openfang.agents.ports import Around
    from openfang.agents.sessions import Interrupted
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Wish
    from openfang.core.calls import Admitted, Call
    from openfang.core.labels import Labels

_log = logging.getLogger("openfang.agents")
DEFAULT_SESSION: Final = "default"
_LOOK_SECONDS: Final = 0.05
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "What to tell the agent."},
        "session": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Which conversation to go on with, by name or id; else the usual one.",
        },
        "parts": {
            "type": "array",
            "items": {"type": "object"},
            "maxItems": 1000,
            "description": "What comes with the message, such as files.",
        },
        "metadata": {"type": "object", "description": "Anything else that it is told."},
    },
    "required": ["message"],
    "additionalProperties": False,
}


_ACCEPTS: Final = {**_SCHEMA, "properties": {**_SCHEMA["properties"], **MORE}}
_OPERATIONS: Final = {
    "tasks/get": "Read a task of yours.",
    "tasks/list": "List your tasks.",
    "tasks/cancel": "End a task of yours, and the work on it.",
    "tasks/subscribe": "Hear of what happens to a task of yours.",
    "tasks/push": "Let somebody be told of what happens to a task of yours.",
    ANSWER: "Give a task of yours what it waits for.",
}
_ON_TASKS: Final[dict[str, Any]] = {"type": "object", "properties": {"task": {"type": "string"}}}


def _operation(spec: AgentSpec, name: str, description: str) -> Tool:
    return Tool(
        id=f"{spec.id}:{name}",
        kind=Kind.AGENT,
        source=spec.name,
        name=spec.name,
        description=description,
        input_schema=_ON_TASKS,
        risk=Risk.LOW,
        tags=frozenset(),
        trust=Trust.HIGH,
        polls=True,
        operation=True,
    )


class AgentSource:
    """One agent, for as long as it is there; another manifest is another `spec`.

    Messages to one session wait for each other, unless one waits for an answer; sessions run side
    by side.
    """

    def __init__(self, spec: AgentSpec, around: Around) -> None:
        self.spec = spec
        self.gone = False
        self._around = around
        self._queues = Queues()
        self._runs: set[anyio.CancelScope] = set()

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.spec.name

    def tools(self) -> Sequence[Tool]:
        """The agent itself, and what can be done with the tasks that it has."""
        spec = self.spec
        return [
            *(_operation(spec, name, what) for name, what in _OPERATIONS.items()),
            Tool(
                id=spec.id,
                kind=Kind.AGENT,
                source=spec.name,
                name=spec.name,
                title=spec.title or None,
                description=spec.description or f"Send a message to the agent {spec.name}.",
                input_schema=_SCHEMA,
                accepts=_ACCEPTS,
                risk=Risk.LOW,
                tags=frozenset(),
                trust=Trust.HIGH,
            ),
        ]

    def end(self) -> None:
        """Take nothing more, and stop what is under way."""
        self.gone = True
        self.interrupt()

    def interrupt(self) -> None:
        """Stop what is under way."""
        for scope in self._runs:
            scope.cancel()

    @property
    def busy(self) -> bool:
        """Whether anything is under way."""
        return bool(self._runs)

    async def execute(self, admitted: Admitted) -> Result:
        """Hold a turn of the conversation, unless the agent is ended meanwhile."""
        self._around.check(admitted)
        if admitted.tool.operation:
            return await self._around.operate(admitted)
        with anyio.CancelScope() as scope:
            if self.gone:
                scope.cancel()
            self._runs.add(scope)
            try:
                return await self._in_turn(admitted)
            finally:
                self._runs.discard(scope)
        raise SourceFailed(
            f"The agent {self.name} was ended before it had answered.",
            way_out="openfang agents list",
        )

    async def _in_turn(self, admitted: Admitted) -> Result:
        call, sessions = admitted.call, self._around.sessions
        session = await sessions.find(self.spec.place, call.caller.id, _session(call))
        if session in call.sessions:
            raise SourceFailed(
                f"The agent {self.name} is at work in this session further up in the chain.",
                way_out="another session, or none",
            )
        async with self._queues.place(f"{call.caller.id} {session}") as place:
            before = self._around.interrupted.get(call.resumes)
            if before is not None:
                return await self._resumed(lending(admitted, place), before)
            if call.resumes:
                raise SourceFailed("Somebody else goes on with this run.")
            return await self._answered(lending(admitted, place), session)

    async def _answered(self, admitted: Admitted, session: str) -> Result:
        call, sessions = admitted.call, self._around.sessions
        while True:
            turn, (first, *more) = await self._opened(admitted, session)
            try:
                origin = write_origin(call, trusted=not admitted.labels.untrusted)
                came = Came(origin=origin, task=call.task)
                await sessions.begin(session, turn.run, first, turn.labels, came)
            except Busy:
                await anyio.sleep(_LOOK_SECONDS)
            else:
                for said in more:
                    await turn.said(said)
                return await self._to_its_end(turn, turn.answer(str(call.arguments["message"])))

    async def _opened(self, admitted: Admitted, session: str) -> tuple[Turn, list[Message]]:
        """Open the session for what is said now; a history that came along stands for its own."""
        call, spec, around = admitted.call, self.spec, self._around
        given = await read_given(call.arguments, partial(around.blob, call))
        most = given.looked_at(spec.history)
        opened = await around.sessions.open(spec.place, call.caller.id, session, most=most)
        said = [await self._message(call)]
        if given.history is not None:
            labels = opened.labels | foreign(given.history, opened.history)
            before, said = parted(joined(given.history, opened.history), said[0], given.history)
            opened = replace(opened, history=before, labels=labels)
        return Turn(self, spec, around, admitted, opened, new_id("run"), said[:1], given), said

    async def _message(self, call: Call) -> Message:
        """What is said to the agent: a model reads all of it, a program gets the rest beside."""
        text, does = str(call.arguments["message"]), self.spec.does
        if not isinstance(does, Mind):
            return Message(speaker=Speaker.USER, text=text)
        blob = partial(self._around.blob, call)
        parts = await whole(call.arguments.get("parts", ()), blob)
        images = tuple(pictures(parts)) if self._around.sees(does) else ()
        return Message(speaker=Speaker.USER, text=in_words(text, parts), images=images)

    async def _resumed(self, admitted: Admitted, before: Interrupted) -> Result:
        """Go on with a run of a process that is gone, without repeating what it had finished."""
        spec, around = self.spec, self._around
        opened = await around.sessions.reopen(before, most=spec.history)
        turns = list(before.turns)
        turn = Turn(
            self,
            spec,
            around,
            admitted,
            opened,
            before.run,
            turns,
            used=before.used,
            trusted=read_origin(before.origin).trusted,
        )
        for lost in resumed(turns, before.begun, around.safe)[len(turns) :]:
            await turn.said(lost)
        return await self._to_its_end(turn, turn.go_on())

    async def _to_its_end(self, turn: Turn, answering: Awaitable[Ended]) -> Result:
        """Close a run however it ends; if nobody waits here, the process that follows goes on."""
        ended, why = Ended(answer="", ending=Ending.FAILED), ""
        try:
            ended = await answering
        except BaseException as error:
            why = _last_words(error)
            raise
        finally:
            if turn.usage is not None:
                ended = replace(ended, usage=turn.usage)
            call = turn.admitted.call
            if not (why and (call.task or call.resumes) and self._around.ending()):
                with anyio.CancelScope(shield=True):
                    await _closed(turn, ended, why)
        return _result(ended, turn.opened.id, turn.labels)


def _session(call: Call) -> str:
    """The name of the conversation; nobody shares those that an agent has on their behalf."""
    name = call.arguments.get("session")
    if not call.sessions:
        return str(name or DEFAULT_SESSION)
    if name is None:
        return f"of {call.sessions[-1]}"
    return str(name) if str(name).startswith("session_") else f"{name} of {call.root}"


async def _closed(turn: Turn, ended: Ended, why: str) -> None:
    """Keep the end of a run; if it broke off, that is what its caller is told of."""
    try:
        await turn.end(ended, why)
    except OpenFangError as error:
        if not why:
            raise
        _log.warning("The end of a run of %s could not be kept: %s", turn.spec.name, error.message)


def _last_words(error: BaseException) -> str:
    if isinstance(error, OpenFangError):
        return f"I stopped: {error.message}"
    if isinstance(error, Exception):
        return "I stopped: something broke."
    return "I stopped: the call was ended before I had answered."


def _result(ended: Ended, session: str, labels: Labels) -> Result:
    usage, budget = ended.usage, ended.budget
    calls = {"calls": [_wish(wish) for wish in ended.wishes]} if ended.wishes else {}
    return Result(
        content=(text_part(ended.answer), *artifact_parts(ended.artifacts)),
        structured={
            "response": ended.answer,
            "session": session,
            "ending": ended.ending.value,
            "artifacts": [one.name for one in ended.artifacts],
            "usage": {
                "requests": usage.requests,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cost_usd": usage.cost_usd,
            },
            **calls,
            **({"budget": budget.as_json()} if budget else {}),
        },
        is_error=ended.ending in {Ending.FAILED, Ending.REJECTED},
        labels=labels,
    )


def _wish(wish: Wish) -> dict[str, Any]:
    return {"id": wish.id, "tool": wish.tool, "arguments": dict(wish.arguments)}
