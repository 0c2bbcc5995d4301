"""One message to one agent, on its way to an answer: what the agent does takes the one path."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

from openfang.agents.attached import whole
from openfang.agents.given import NOTHING, described
from openfang.agents.handles import NAME, REVEAL, filled, written
from openfang.agents.history import lost, unanswered
from openfang.agents.loop import Run, parting
from openfang.agents.meter import Meter, Metered
from openfang.agents.ports import Incoming, Rest
from openfang.agents.questions import answer_in, askable, question_call
from openfang.agents.spec import Mind, both
from openfang.core.agents import NO_USAGE, Ended, Ending, Message, Speaker, Words
from openfang.core.errors import CallFailed, CallRefused
from openfang.core.results import Result, error_result, text_part, text_result
from openfang.core.usage import Entry, Spending
from openfang.core.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from openfang.agents.given import Given
    from openfang.agents.ports import Around, Conversation
    from openfang.agents.spec import AgentSpec
    from openfang.core.agents import Usage, Wish
    from openfang.core.calls import Admitted, Call, Caller
    from openfang.core.labels import Labels
    from openfang.core.progress import Told
    from openfang.core.tools import Tool
    from openfang.core.usage import Payer


_SHOWN: Final = 80
_WANTED: Final = ("instructions", "temperature", "max_tokens", "tools")


class Agent(Protocol):
    """The agent as it is now."""

    @property
    def spec(self) -> AgentSpec:
        """What its manifest says at this moment."""
        ...


@dataclass(slots=True)
class Turn:
    """Binds one run to its agent, its caller and its session. It is the run's journal, too.

    `spec` is the agent as the run began, `turns` is what was said in it so far, `used` what an
    earlier process had used. `trusted` is whether nobody outside had a part in the message; None is
    as its labels say.
    """

    agent: Agent
    spec: AgentSpec
    around: Around
    admitted: Admitted
    opened: Conversation
    run: str
    turns: list[Message]
    given: Given = NOTHING
    used: Usage = NO_USAGE
    trusted: bool | None = None
    labels: Labels = field(init=False)
    _payer: Payer = field(init=False)
    _meter: Meter = field(default_factory=Meter, init=False)
    _unsaid: list[str] = field(default_factory=list[str], init=False)
    _thinking: Run | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.labels = self.admitted.labels | self.opened.labels
        self._payer = self.around.budgets.payer(self.spec, self.admitted.call, self.run)
        self._hear()

    def _hear(self) -> None:
        """Let what the agent is told by its operator and its caller name targets."""
        call, does, hear = self.admitted.call, self.spec.does, self.around.hear
        trusted = not self.admitted.labels.untrusted if self.trusted is None else self.trusted
        if trusted:
            hear(call.root, self.opened.id, str(call.arguments["message"]))
        if isinstance(does, Mind) and not self.spec.parent:
            hear(call.root, self.opened.id, does.system)

    @property
    def usage(self) -> Usage | None:
        """What the model has used so far."""
        return self._thinking.usage if self._thinking else None

    async def answer(self, text: str) -> Ended:
        """Let the model, or the program, answer."""
        does = self.spec.does
        if isinstance(does, Mind):
            return await self._by_model(does)
        return await self.around.programs.answer(
            self.spec, await self._incoming(text), call=self.call, ask=self.ask, told=self._told
        )

    async def _incoming(self, text: str) -> Incoming:
        call = self.admitted.call
        sent = call.arguments.get("parts", ())
        return Incoming(
            message=text,
            session=self.opened.id,
            run=self.run,
            message_id=call.id,
            parts=(*await whole(sent, partial(self.around.blob, call)),),
            metadata=self._metadata(),
            history=self.opened.history,
        )

    def _metadata(self) -> Mapping[str, Any]:
        """What a program is told besides; it is nobody's to hold to instructions."""
        arguments = self.admitted.call.arguments
        wanted = {name: arguments[name] for name in _WANTED if name in arguments}
        return {**wanted, **arguments.get("metadata", {})}

    async def go_on(self) -> Ended:
        """Go on after what was said; a program cannot, because nobody knows how far it was."""
        does = self.spec.does
        if isinstance(does, Mind):
            return await self._by_model(does)
        return Ended(answer="The agent's process was interrupted.", ending=Ending.FAILED)

    async def _by_model(self, mind: Mind) -> Ended:
        given = self.given
        mind = given.mind(mind)
        self._thinking = Run(
            model=Metered(
                self.around.model(mind),
                self._meter,
                partial(self.around.thought, self.admitted.call.chain),
            ),
            system=mind.system,
            history=[*self.opened.history, *self.turns],
            tools=lambda: given.beside(self._offered()),
            call=partial(self.call, kept=True),
            journal=self,
            told=self._told,
            now=self.around.now,
            budget=self.spec.budget,
            max_tokens=mind.max_tokens,
            temperature=mind.temperature,
            over=self.around.budgets.holding(self.spec, self._payer, self.admitted.call.chain),
            usage=self.used,
            window=mind.window,
            theirs=given.names,
        )
        return await self._thinking.answer()

    def _offered(self) -> Sequence[Tool]:
        """What the model is offered; it reads how others describe their tools."""
        tools = self.around.tools(self._caller)
        self.labels |= described(tools)
        return [*tools, REVEAL] if self._handles else tools

    def _told(self, told: Told) -> None:
        """Pass it on; words that never become a turn are not lost."""
        if isinstance(told, Words):
            self._unsaid.append(told.text)
        if self.admitted.progress is not None:
            self.admitted.progress(told)

    @property
    def _caller(self) -> Caller:
        """The agent as the one who calls: as it began and as it is now, whichever allows less."""
        return both(self.spec, self.agent.spec)

    async def call(self, wish: Wish, *, kept: bool = False) -> Result:
        """Make a call as the agent; what came before in the conversation taints it.

        `kept`: that it is made stands in the journal, from the moment on at which it is. One that
        waits for a person was not made: who goes on with the run makes it.
        """
        call = self._made(wish, kept=kept)
        if not self._handles:
            return self._read(await self._answered(call))
        if wish.tool == NAME:
            return await self._revealed(call)
        return await self._held(call, wish)

    async def _held(self, call: Call, wish: Wish) -> Result:
        """Make a call with what its handles stand for, and keep what comes from outside."""
        handles = self.around.handles
        arguments, carried = await filled(wish.arguments, partial(handles.find, call))
        if carried and not self.labels.untrusted:
            # Nobody outside had a part in what else the model wrote: its own words name targets.
            self.around.hear(call.root, self.opened.id, json.dumps(dict(wish.arguments)))
        call = replace(call, arguments=arguments, labels=self.labels | carried, apart=True)
        try:
            result = await self._answered(call)
        except CallRefused as refusal:
            if carried:  # it may quote what the model has not read
                refusal.message = f"{wish.tool} was not called: {refusal.rule}."
            raise
        if not result.labels.untrusted:
            return self._read(result)
        told = text_part(written(await handles.keep(call, result), wish.tool, result))
        return Result(content=(told,), is_error=result.is_error, receipt=result.receipt)

    def _made(self, wish: Wish, *, kept: bool) -> Call:
        parent = self.admitted.call
        made = parent.child(wish.tool, wish.arguments, ancestor=self.spec.id)
        return replace(
            made,
            run=self.run,
            labels=self.labels,
            sessions=(*parent.sessions, self.opened.id),
            beside=self.around.sessions.begun(self.run, wish) if kept else (),
            step=self._step(wish) if kept else made.id,
        )

    def _step(self, wish: Wish) -> str:
        """Name a call by the run, the turn in which it was wanted, and its place there.

        A process that goes on with the run gives it the same name. A model may use an id again in a
        later turn.
        """
        count = len(self.turns)
        while count and self.turns[count - 1].speaker is not Speaker.AGENT:
            count -= 1
        named = f"{self.run} {count} {wish.id}"
        return sha256(named.encode("utf-8", "replace")).hexdigest()[:32]

    @property
    def _handles(self) -> bool:
        return isinstance(self.spec.does, Mind) and self.spec.does.handles

    async def _answered(self, call: Call) -> Result:
        """Make a call; the message of one that failed may be somebody else's words."""
        try:
            return await self._counted(await self.around.bind(self._caller, call))
        except CallFailed as failure:
            if not call.apart or not failure.labels.untrusted:
                self.labels |= failure.labels
                raise
            return error_result(failure.message, labels=failure.labels)

    def _read(self, result: Result) -> Result:
        self.labels |= result.labels
        return result

    async def _revealed(self, call: Call) -> Result:
        """Show what a handle stands for: from now on the run carries what it carries."""
        handle = str(call.arguments.get("handle", ""))
        found = await self.around.handles.find(call, handle)
        if found is None:
            return error_result(f"There is no result {handle[:_SHOWN]}: make the call again.")
        text, labels = found
        bound = await self.around.bind(self._caller, call)
        await self.around.handles.reveal(bound, handle, labels)
        return self._read(text_result(text, labels=labels))

    async def _counted(self, call: Call) -> Result:
        """Make a call; one that was refused is none."""
        made = Spending(tool_calls=1)
        try:
            return await self.around.invoke(call)
        except CallRefused:
            made = Spending()
            raise
        finally:
            self._meter.count(made)

    async def ask(self, question: str) -> str:
        """Ask whoever sent the message, if their client can."""
        client = askable(self.admitted, self.spec.name)
        self.around.client_known(client.key)
        asked = question_call(self.admitted.call, self._caller, client, question)
        call = await self.around.bind(asked.caller, replace(asked, labels=self.labels))
        result = await self.around.invoke(call)
        self.labels |= result.labels
        return answer_in(result)

    async def said(self, message: Message) -> None:
        """Keep a turn, and with it what it cost."""
        with self._entry() as entry:
            await self.around.sessions.said(self.opened.id, self.run, message, entry)
        self.turns.append(message)
        if message.speaker is Speaker.AGENT:
            self._unsaid.clear()

    async def end(self, ended: Ended, why: str = "") -> None:
        """Keep how it ended; `why` is said if the run broke off."""
        left = tuple(self._left(ended, why))
        with self._entry() as entry:
            rest = Rest(said=left, entry=entry)
            await self.around.sessions.end(self.opened.id, self.run, ended, self.labels, rest)

    @contextmanager
    def _entry(self) -> Generator[Entry]:
        """Write down what was counted, with what is written now."""
        with self._meter.keeping() as spending:
            yield Entry(payer=self._payer, spending=spending)
        self.around.budgets.spent(spending, self.admitted.call.chain)

    def _left(self, ended: Ended, why: str) -> Iterator[Message]:
        """Leave nothing open in the session: no call without its result, no question unanswered."""
        if ended.ending is Ending.CALLS:
            return  # whoever asked makes them, and goes on with their results
        open_calls = unanswered(self.turns)
        yield from map(lost, open_calls)
        last = self.turns[-1]
        if open_calls or last.speaker is not Speaker.AGENT or last.wishes:
            yield Message(speaker=Speaker.AGENT, text=self._last_words(ended, why))

    def _last_words(self, ended: Ended, why: str) -> str:
        said = "".join(self._unsaid)
        if why:
            return "\n\n".join(filter(None, (said, why)))
        return parting(said, ended.ending, ended.why) if self._thinking else ended.answer
