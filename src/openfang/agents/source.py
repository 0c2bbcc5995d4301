"""An agent as a tool: a message in, an answer out; what it does on the way takes the one path."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from openfang.agents.history import resumed
from openfang.agents.loop import Run
from openfang.agents.ports import Incoming
from openfang.agents.spec import Mind
from openfang.core.agents import Ended, Ending, Message, Speaker
from openfang.core.ids import Kind, new_id
from openfang.core.results import Result, text_part
from openfang.core.tools import Risk, Tool, Trust

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.agents.ports import Around, Conversation
    from openfang.agents.sessions import Interrupted
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Wish
    from openfang.core.calls import Admitted, Call
    from openfang.core.labels import Labels
    from openfang.core.progress import Listener

DEFAULT_SESSION: Final = "default"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "What to tell the agent."},
        "session": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Which conversation to go on with; left out, the usual one.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}


def _silent(heard: object) -> None:
    del heard


class AgentSource:
    """One agent. Messages to one session wait for each other; sessions run side by side."""

    def __init__(self, spec: AgentSpec, around: Around) -> None:
        self.spec = spec
        self._around = around
        self._turns: dict[tuple[str, str], _Turn] = {}

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.spec.name

    def tools(self) -> Sequence[Tool]:
        """The agent itself."""
        spec = self.spec
        return [
            Tool(
                id=spec.id,
                kind=Kind.AGENT,
                source=spec.name,
                name=spec.name,
                title=spec.title or None,
                description=spec.description or f"Send a message to the agent {spec.name}.",
                input_schema=_SCHEMA,
                risk=Risk.LOW,
                tags=frozenset(),
                trust=Trust.HIGH,
            )
        ]

    async def execute(self, admitted: Admitted) -> Result:
        """Hold a turn of the conversation."""
        self._around.check(admitted)
        arguments = admitted.call.arguments
        name = str(arguments.get("session", DEFAULT_SESSION))
        caller = admitted.call.caller.id
        async with self._in_turn(caller, name):
            before = self._around.interrupted.get(admitted.call.resumes)
            if before is not None:
                return await self._resumed(admitted, before)
            most = self.spec.history
            opened = await self._around.sessions.open(self.spec.name, caller, name, most=most)
            return await self._answered(admitted, opened, str(arguments["message"]))

    def _in_turn(self, caller: str, name: str) -> _Turn:
        key = (caller, name)
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = _Turn(lambda: self._turns.pop(key, None))
        return turn

    async def _answered(self, admitted: Admitted, opened: Conversation, text: str) -> Result:
        around, run = self._around, new_id("run")
        turn = Turn(self.spec, around, admitted, opened, run)
        message = Message(speaker=Speaker.USER, text=text)
        await around.sessions.begin(opened.id, run, message, turn.labels)
        return await self._to_its_end(turn, turn.answer(text))

    async def _resumed(self, admitted: Admitted, before: Interrupted) -> Result:
        """Go on with a run of a process that is gone, without repeating what it had finished."""
        opened = await self._around.sessions.reopen(before, most=self.spec.history)
        turns = resumed(before.turns, before.begun, self._around.safe)
        turn = Turn(self.spec, self._around, admitted, opened, before.run)
        for lost in turns[len(before.turns) :]:
            await turn.said(lost)
        return await self._to_its_end(turn, turn.go_on(turns))

    async def _to_its_end(self, turn: Turn, answering: Awaitable[Ended]) -> Result:
        ended = Ended(answer="", ending=Ending.FAILED)
        try:
            ended = await answering
        finally:
            with anyio.CancelScope(shield=True):
                await self._around.sessions.end(turn.opened.id, turn.run, ended, turn.labels)
        return _result(ended, turn.opened.id, turn.labels)


@dataclass(slots=True)
class _Turn:
    """A lock that is forgotten when nobody waits for it."""

    forget: Callable[[], object]
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _waiting: int = 0

    async def __aenter__(self) -> None:
        self._waiting += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._left()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._left()

    def _left(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self.forget()


@dataclass(slots=True)
class Turn:
    """One message to one agent, on its way to an answer. It is the run's journal, too."""

    spec: AgentSpec
    around: Around
    admitted: Admitted
    opened: Conversation
    run: str
    labels: Labels = field(init=False)

    def __post_init__(self) -> None:
        self.labels = self.admitted.labels | self.opened.labels

    async def answer(self, text: str) -> Ended:
        """Let the model, or the program, answer."""
        does = self.spec.does
        if isinstance(does, Mind):
            return await self._by_model(does, [Message(speaker=Speaker.USER, text=text)])
        incoming = Incoming(
            message=text, session=self.opened.id, run=self.run, history=self.opened.history
        )
        ended = await self.around.programs.answer(
            self.spec, incoming, call=self.call, told=self._told
        )
        await self.said(Message(speaker=Speaker.AGENT, text=ended.answer))
        return ended

    async def go_on(self, turns: Sequence[Message]) -> Ended:
        """Go on after these turns; a program cannot, because nobody knows how far it was."""
        does = self.spec.does
        if isinstance(does, Mind):
            return await self._by_model(does, turns)
        return Ended(answer="The agent's process was interrupted.", ending=Ending.FAILED)

    async def _by_model(self, mind: Mind, turns: Sequence[Message]) -> Ended:
        run = Run(
            model=self.around.model(mind),
            system=mind.system,
            history=[*self.opened.history, *turns],
            tools=lambda: self.around.tools(self.spec.caller),
            call=self.call,
            journal=self,
            told=self._told,
            budget=self.spec.budget,
            max_tokens=mind.max_tokens,
            temperature=mind.temperature,
        )
        return await run.answer()

    @property
    def _told(self) -> Listener:
        return self.admitted.progress or _silent

    async def call(self, wish: Wish) -> Result:
        """Make a call as the agent; what came before in the conversation taints it."""
        parent = self.admitted.call
        made = parent.child(wish.tool, wish.arguments, ancestor=self.spec.id)
        call = replace(made, run=self.run, labels=self.labels)
        result = await self.around.invoke(self._as_agent(call, parent))
        self.labels |= result.labels
        return result

    def _as_agent(self, call: Call, parent: Call) -> Call:
        """The agent's own grants hold; what its caller is bound to tightens them."""
        return self.around.bind(self.spec.caller, replace(call, context=parent.context))

    async def said(self, message: Message) -> None:
        """Keep a turn."""
        await self.around.sessions.said(self.opened.id, self.run, message)

    async def begun(self, wish: Wish) -> None:
        """Keep that a call is about to be made."""
        await self.around.sessions.begun(self.run, wish)


def _result(ended: Ended, session: str, labels: Labels) -> Result:
    usage = ended.usage
    return Result(
        content=(
            text_part(ended.answer),
            *(part for artifact in ended.artifacts for part in artifact.parts),
        ),
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
        },
        is_error=ended.ending in {Ending.FAILED, Ending.REJECTED},
        labels=labels,
    )
