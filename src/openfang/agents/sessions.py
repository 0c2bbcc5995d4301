"""Conversations that stay: each step of a run is on disk before the next one follows from it."""

from __future__ import annotations

import logging
import re
import time
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from openfang.agents.history import closed, trimmed
from openfang.agents.ports import NO_REST, NOWHERE, Busy, Conversation
from openfang.core.agents import NO_USAGE, Ended, Ending, Speaker
from openfang.core.errors import Conflict, HomeError, SourceFailed
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.sessions import SessionSummary
from openfang.core.values import dataclass
from openfang.storage import agent_runs, ledger, sessions
from openfang.storage.agent_runs import AgentRunStore, Beginning
from openfang.storage.approvals import ApprovalStore
from openfang.storage.ledger import LedgerStore
from openfang.storage.ports import Unsure
from openfang.storage.queued import is_queued, left_by, own
from openfang.storage.sessions import SessionStore
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from openfang.agents.ports import Came, Rest
    from openfang.core.agents import Message, Usage, Wish
    from openfang.core.sessions import SessionTurn
    from openfang.core.usage import Entry
    from openfang.storage.agent_runs import RunUnderWay
    from openfang.storage.ports import Storage, Writes
    from openfang.storage.processes import Process
    from openfang.storage.sessions import Statement

Queued: TypeAlias = "Callable[[RunUnderWay], Awaitable[Sequence[Statement]]]"
"""Gives what puts a run on a queue; nothing if this process goes on with it."""
_log = logging.getLogger("openfang.agents")
_CHARACTERS_ON_THE_LOOP: Final = 250_000
_MOST_TAKEN: Final = 3
_PAUSE_SECONDS: Final = 0.5
_ID: Final = re.compile(r"\Asession_[0-9a-f]{32}\Z")
_RESERVED: Final = "session_"


async def _here(run: RunUnderWay) -> Sequence[Statement]:
    del run
    return ()


async def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A run whose process is gone, and which is ours now. `turns` is what was said in it so far.

    It was `taken` so often, and is ours as long as that holds; `last` is the number of its last
    turn, and the session's, as long as that does not go on without it. `begun` are calls that were
    about to be made and have no result. `used` is what it has cost.
    """

    run: str
    session: str
    agent: str
    caller: str
    labels: Labels
    first: int
    last: int
    turns: Sequence[Message]
    begun: frozenset[str]
    taken: int
    origin: str = ""
    task: str = ""
    used: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSessions:
    """Conversations in the home's database."""

    database: Storage
    writer: Writes
    process: Process
    now: Callable[[], int] = time.time_ns

    async def find(self, agent: str, caller: str, name: str) -> str:
        """Give the id of a session: find it by its name, or begin one.

        What is an id already is looked for when it is opened.
        """
        return name if _ID.match(name) else (await self._found(agent, caller, name)).id

    async def open(self, agent: str, caller: str, name: str, *, most: int) -> Conversation:
        """Open one; of its messages the last, cut where a person speaks."""
        found = await self._found(agent, caller, name)
        history = await self._end_of(found.id, found.messages, most)
        return Conversation(id=found.id, history=history, labels=await self._labels(found))

    async def begin(
        self, session: str, run: str, message: Message, labels: Labels, came: Came = NOWHERE
    ) -> None:
        """Begin a run with what was said to the agent, and the labels that it came with.

        `Busy` while another process has a run there.
        """
        now = self.now()
        beginning = Beginning(
            run=run,
            session=session,
            process=self.process.id,
            labels=labels,
            origin=came.origin,
            task=came.task,
            now=now,
        )
        said = sessions.ask(session, run, message, now)
        try:
            await self._write(*self._known(), *agent_runs.begin(beginning), *said)
        except SourceFailed:
            others = await self._others_in(session)
            if await self._store.get(session) is None or not others:
                raise
            dead = await left_by(self.process.roll, others)
            if not others <= dead:
                raise Busy from None
            await self._write(*self._known(), *agent_runs.begin(beginning, dead), *said)
        self.process.known = True

    async def said(
        self, session: str, run: str, message: Message, entry: Entry | None = None
    ) -> None:
        """Keep a turn of a run, and what was used up until then."""
        result, now = message.speaker is Speaker.TOOL, self.now()
        await self._write(
            *sessions.say(session, run, message, now),
            *((agent_runs.answered(run, message.answers),) if result else ()),
            *ledger.add(entry, now),
        )

    def begun(self, run: str, wish: Wish) -> tuple[Statement, ...]:
        """Give what keeps that a call of a run is made, for the unit in which it begins."""
        return (agent_runs.call(run, wish),)

    async def end(
        self,
        session: str,
        run: str,
        ended: Ended,
        labels: Labels,
        rest: Rest = NO_REST,
    ) -> None:
        """Keep how a run ended, its last turns, and what the conversation carries from now on."""
        now = self.now()
        turns = [sessions.say(session, run, message, now) for message in rest.said]
        await self._write(
            *chain.from_iterable(turns),
            *agent_runs.end(run, ended, now),
            sessions.carry(session, labels, now),
            *ledger.add(rest.entry, now),
        )

    async def interrupted(self, queued: Queued = _here) -> list[Interrupted]:
        """Take over the runs whose processes are gone. No two processes are handed the same one.

        What had answered already, or has been overtaken, or took one process after the other along
        is ended instead. What can be `queued` is, for whichever node takes it from there.
        """
        runs = await AgentRunStore(self.database).left()
        processes = {run.process for run in runs} - {self.process.id}
        dead = await self.process.roll.gone(processes)
        found = [await self._left(run, queued) for run in runs if run.process in dead]
        return [one for one in found if one is not None]

    async def _left(self, run: RunUnderWay, queued: Queued) -> Interrupted | None:
        """Take a run over, or put it on a queue; its task, if it has one, says where that is."""
        put = () if run.task else await queued(run)
        if not put:
            return await self.take(run)
        with suppress(Conflict):  # another process was faster
            await self._insist(Unit(statements=(agent_runs.enqueue(run), *put)))
        return None

    async def reopen(self, interrupted: Interrupted, *, most: int) -> Conversation:
        """Open a session as it was before an interrupted run; its `turns` follow on that."""
        history = await self._end_of(interrupted.session, interrupted.first - 1, most)
        return Conversation(id=interrupted.session, history=history, labels=interrupted.labels)

    @property
    def _store(self) -> SessionStore:
        return SessionStore(self.database)

    async def _others_in(self, session: str) -> set[str]:
        """Name the other processes that have a run in the session, or had one when they ended."""
        runs = await AgentRunStore(self.database).under_way_in(session)
        return {run.process for run in runs} - {*own(self.process.id)}

    async def _found(self, agent: str, caller: str, name: str) -> SessionSummary:
        if not name.startswith(_RESERVED):
            found = await self._store.find(agent, caller, name)
            return found or await self._new(agent, caller, name)
        found = await self._store.get(name) if _ID.match(name) else None
        if found is None or (found.agent, found.caller) != (agent, caller):
            raise SourceFailed(
                f"{caller} has no session {name} with {agent}.",
                way_out="openfang sessions list, or a name that does not begin with session_",
            )
        return found

    async def _new(self, agent: str, caller: str, name: str) -> SessionSummary:
        now = self.now()
        new = SessionSummary(
            id=new_id("session"),
            agent=agent,
            caller=caller,
            name=name,
            title="",
            messages=0,
            labels=Labels.NONE,
            created_at=now,
            updated_at=now,
        )
        await self._write(sessions.insert(new))
        # Another process may have begun one of that name a moment ago: then that is the one.
        return await self._store.find(agent, caller, name) or new

    async def _end_of(self, session: str, until: int, most: int) -> Sequence[Message]:
        """Read what an agent remembers; what is long is read aside."""
        if not until or not most:
            return ()
        bound = _CHARACTERS_ON_THE_LOOP
        found, whole = await self._store.last(session, until, most, characters=bound)
        if not whole:
            found, _ = await self.database.aside(
                lambda reader: SessionStore(reader).last(session, until, most)
            )
        return closed(trimmed(found, most))

    async def _labels(self, session: SessionSummary) -> Labels:
        """What a session carries, with what came into runs that never ended."""
        runs = await AgentRunStore(self.database).under_way_in(session.id)
        # A run that has ended since left its labels with the session: so that is read behind them.
        labels = (await self._store.get(session.id) or session).labels
        for run in runs:
            labels |= run.labels
        return labels

    def _known(self) -> tuple[Statement, ...]:
        process = self.process
        return () if process.known else (process.begin(self.writer.head.seq + 1),)

    async def take(self, run: RunUnderWay) -> Interrupted | None:
        """Take a run over; nothing if it is over, or somebody else was faster."""
        turns = await self._store.turns_of(run.session, run.id)
        session = await self._store.get(run.session)
        if session is None or not turns:
            return None
        waits = await ApprovalStore(self.database).waits_in(run.id)
        over, used = _why_over(run, session, turns, waits=waits), await self._used(run.id)
        rest = _ending(run, over, used, self.now()) if over else ()
        by = own(self.process.id)[is_queued(run.process)]
        try:
            taken = agent_runs.take_over(run, by, None if over else session.messages)
            unit = Unit(statements=(*self._known(), taken, *rest))
            await self._insist(unit, partial(self._is_taken, run, by))
        except Conflict:  # another process was faster
            return None
        self.process.known = True
        if over:
            _log.warning("A run of %s that was interrupted does not go on: %s", run.agent, over)
            return None
        return Interrupted(
            run=run.id,
            session=run.session,
            agent=run.agent,
            caller=run.caller,
            labels=session.labels | run.labels,
            first=turns[0].seq,
            last=turns[-1].seq,
            taken=run.taken + 1,
            turns=[turn.message for turn in turns],
            begun=await AgentRunStore(self.database).begun(run.id),
            origin=run.origin,
            task=run.task,
            used=used,
        )

    async def _used(self, run: str) -> Usage:
        return (await LedgerStore(self.database).of_run(run)).usage

    async def _is_taken(self, run: RunUnderWay, by: str) -> bool:
        now = await AgentRunStore(self.database).still(run.id)
        return now is not None and (now.process, now.taken) == (by, run.taken + 1)

    async def _insist(self, unit: Unit, is_kept: Callable[[], Awaitable[bool]] = _never) -> None:
        """Write it as soon as that can be done: at a start others may be at it, too.

        If it may have been kept already, and now it cannot be, `is_kept` tells. Who is another
        process meanwhile has to look again.
        """
        me, unsure = self.process.id, False
        while self.process.id == me:
            try:
                return await self._written(unit, is_kept if unsure else _never)
            except HomeError as error:
                unsure = unsure or isinstance(error, Unsure)
                _log.warning("An interrupted run cannot be taken over yet: %s", error.message)
                await anyio.sleep(_PAUSE_SECONDS)
        raise HomeError("This process is another one by now.", way_out="it is looked at again")

    async def _written(self, unit: Unit, is_kept: Callable[[], Awaitable[bool]]) -> None:
        try:
            await self.writer.write(unit)
        except Conflict:
            if not await is_kept():
                raise

    async def _write(self, *statements: Statement) -> None:
        try:
            await self.writer.write(Unit(statements=statements))
        except Conflict as error:
            raise SourceFailed(
                "The session was deleted meanwhile.", way_out="send the message again"
            ) from error
        except HomeError as error:
            raise SourceFailed(
                f"The conversation could not be kept: {error.message}", way_out=error.way_out
            ) from error


_ANSWERED: Final = "it had answered"


def _why_over(
    run: RunUnderWay, session: SessionSummary, turns: Sequence[SessionTurn], *, waits: bool
) -> str | None:
    """Say why a run is over; one that waits for a person has taken no process along."""
    last = turns[-1]
    if last.message.speaker is Speaker.AGENT and not last.message.wishes:
        return _ANSWERED
    if last.seq != session.messages:
        return "the session went on without it"
    if run.taken >= _MOST_TAKEN and not waits:
        return f"it was begun {run.taken + 1} times, and never came to an end"
    return None


def _ending(run: RunUnderWay, why: str, used: Usage, now: int) -> tuple[Statement, ...]:
    if why != _ANSWERED:
        return agent_runs.give_up(run, now, used)
    ended = Ended(answer="", ending=Ending.ANSWERED, usage=used)
    return *agent_runs.end(run.id, ended, now), sessions.carry(run.session, run.labels, now)
