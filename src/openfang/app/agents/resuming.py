"""Going on with runs that a process began and did not end, bound to what they were bound to."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from openfang.agents.origin import read_origin
from openfang.agents.ports import Rest
from openfang.agents.spec import Mind
from openfang.app.agents.holders import OWN_TIME, Holders, reaching
from openfang.app.schedules.outcomes import Own, kept
from openfang.core.agents import Ended, Ending, Message, Speaker
from openfang.core.calls import FOREVER, Call
from openfang.core.errors import (
    AuditUnavailable,
    CallRefused,
    GuardTripped,
    OpenFangError,
    SourceFailed,
)
from openfang.core.results import Result, text_part
from openfang.core.values import dataclass
from openfang.policy.context import NO_WISH, bind
from openfang.storage.agent_runs import AgentRunStore
from openfang.storage.queued import own
from openfang.storage.sessions import SessionStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.agents.sessions import Interrupted, StoredSessions
    from openfang.agents.source import AgentSource
    from openfang.app.parts import Parts
    from openfang.core import agents
    from openfang.core.calls import Caller
    from openfang.core.clients import Client
    from openfang.core.progress import Listener
    from openfang.storage.agent_runs import RunUnderWay
    from openfang.storage.ports import Reader

_log = logging.getLogger("openfang.agents")
_MEETING_SECONDS: Final = 3.0
_AGAIN_SECONDS: Final = 2.0
_PAUSES: Final = (1.0, 5.0, 15.0, 30.0, 60.0)
"""How long a run waits that is refused since there is too much of something just then."""


@dataclass(slots=True, kw_only=True)
class Resuming:
    """Takes interrupted runs up again. `interrupted` are those that are being gone on with."""

    parts: Parts
    sessions: StoredSessions
    running: Mapping[str, AgentSource]
    interrupted: dict[str, Interrupted] = field(default_factory=dict[str, "Interrupted"])

    async def taken(self, run: str) -> bool:
        """Go on with a run that was taken from its queue; whether it has ended."""
        left = await self._store.still(run)
        one = None if left is None else await self.sessions.take(left)
        if one is not None:
            await self.resume(one)
        return one is None or await self._store.still(run) is None

    async def resume(self, one: Interrupted) -> None:
        """Go on with a run that nobody waits for, until its end is kept or this node hands it on.

        How often one is taken is counted with it: after some times it is ended.
        """
        left: Interrupted | None = one
        while left is not None:
            tried = await self._tried(left)
            left = None if tried is None else await self._unended(tried)

    async def _tried(self, one: Interrupted) -> Interrupted | None:
        """Go on; one that is refused waits for no more, unless it was too much just then.

        Nothing if it was not ours to go on with any more.
        """
        for pause in (0.0, *_PAUSES):
            await anyio.sleep(pause)
            try:
                now = await self._as_it_is(one)
                if now is None:
                    return None
                one = now
                await self.go_on(one)
            except (GuardTripped, AuditUnavailable) as error:
                _log.warning("A run of %s waits: %s", one.agent, error.message)
                if _is_for_good(error) or self.parts.hands_on:
                    break
            except CallRefused as error:
                _log.warning("A run of %s did not go on: %s", one.agent, error.message)
                break
            except OpenFangError as error:
                _log.warning("A run of %s broke off: %s", one.agent, error.message)
                return one
            else:
                return one
        if not self.parts.hands_on:
            with suppress(OpenFangError):
                await self._given_up(one, "it was refused")
        return one

    async def _as_it_is(self, one: Interrupted) -> Interrupted | None:
        """Give a run that is still ours; its session may have gone on without it, which ends it."""
        left = await self._ours(one)
        if left is None:
            return None
        session = await SessionStore(self.parts.database).get(one.session)
        if session is not None and session.messages == one.last:
            return one
        return await self.sessions.take(left)

    async def _ours(self, one: Interrupted) -> RunUnderWay | None:
        """Find it, if it has not ended and nobody has taken it since: we may have ourselves."""
        left = await self._store.still(one.run)
        if left is None or left.process not in own(self.sessions.process.id):
            return None
        return left if left.taken == one.taken else None

    async def _unended(self, one: Interrupted) -> Interrupted | None:
        """Take a run again that is still ours: its end could not be kept."""
        while not self.parts.hands_on:
            try:
                left = await self._ours(one)
                if left is None:
                    return None
                await anyio.sleep(_AGAIN_SECONDS)
                return await self.sessions.take(left)
            except OpenFangError as error:
                _log.warning("What became of a run cannot be seen: %s", error.message)
            await anyio.sleep(_AGAIN_SECONDS)
        return None

    async def give_up(self, run: str) -> None:
        """End a run on which nobody will ever go on."""
        left = await self._store.still(run)
        one = None if left is None else await self.sessions.take(left)
        if one is not None:
            await self._given_up(one, "nobody takes it")

    async def go_on(
        self, one: Interrupted, client: Client | None = None, progress: Listener | None = None
    ) -> Result:
        """Go on with a run, as whoever began it; one without its agent or its key is ended.

        So is one whose caller had brought more than a message: it is theirs to bring again.
        """
        run = Own(
            edge=read_origin(one.origin).edge,
            task=one.task,
            session=one.session,
            agent=one.agent,
            owner=one.caller,
        )
        return await kept(self.parts, run, partial(self._gone_on, one, client, progress))

    async def _gone_on(
        self, one: Interrupted, client: Client | None, progress: Listener | None
    ) -> Result:
        caller = await self._holders.find(one.caller)
        if caller is None or one.agent not in self.running:
            raise await self._given_up(
                one, f"The agent {one.agent} or the key of {one.caller} was gone after a restart."
            )
        if read_origin(one.origin).given:
            raise await self._given_up(
                one, f"What {one.caller} had sent to {one.agent} with the message is not kept."
            )
        await self._met()
        self.interrupted[one.run] = one
        try:
            call = replace(self._call(one, caller), client=client, progress=progress)
            return await self.parts.invoke(call)
        finally:
            self.interrupted.pop(one.run, None)

    async def _met(self) -> None:
        """Wait a little for servers and peers: their tools were there when the run began."""
        with anyio.move_on_after(_MEETING_SECONDS):
            if self.parts.servers is not None:
                await self.parts.servers.settled(woken=False)
            if self.parts.peers is not None:
                await self.parts.peers.settled()

    @property
    def _store(self) -> AgentRunStore:
        return AgentRunStore(self.parts.database)

    async def ended(self, task: str) -> Result | None:
        """Find the answer of a run that ended before its task did; a program's is not kept."""
        found = await self._store.ended_for(task)
        if found is None:
            return None
        session, run, ending = found
        turns = await SessionStore(self.parts.database).turns_of(session, run)
        known = self.running.get(await _agent_of(self.parts.database, session))
        if not turns or known is None or not isinstance(known.spec.does, Mind):
            return None
        return Result(
            content=(text_part(turns[-1].message.text),),
            structured={"ending": ending.value},
            is_error=ending in {Ending.FAILED, Ending.REJECTED},
        )

    async def is_elsewhere(self, task: str) -> bool:
        """Whether another process that lives works on a task."""
        at_work = await self._store.at_work_on(task)
        return bool(at_work - await self.parts.broker.process.roll.gone(at_work))

    def is_safe(self, wish: agents.Wish) -> bool:
        """Whether a call may be made again though it may have been made."""
        tool = self.parts.registry.find(wish.tool)
        return tool is not None and (tool.idempotent or tool.only_reads)

    async def _given_up(self, one: Interrupted, why: str) -> SourceFailed:
        """End it, and say why."""
        ended = Ended(
            answer="I stopped: nobody could go on with it.", ending=Ending.FAILED, usage=one.used
        )
        words = Message(speaker=Speaker.AGENT, text=ended.answer)
        await self.sessions.end(one.session, one.run, ended, one.labels, Rest(said=(words,)))
        return SourceFailed(why, way_out="send the message again")

    @property
    def _holders(self) -> Holders:
        return Holders(self.parts, self.running)

    def _call(self, one: Interrupted, caller: Caller) -> Call:
        message = next((turn.text for turn in one.turns if turn.speaker is Speaker.USER), "")
        origin, seconds = read_origin(one.origin), self.parts.config.guard.deadline_secs
        blacklist = self.parts.config.policy.blacklist
        of_its_own = origin.edge in OWN_TIME
        return Call(
            tool=self.running[one.agent].spec.id,
            caller=reaching(caller, one.agent) if of_its_own else caller,
            arguments={"message": message, "session": one.session},
            context=(
                self._holders.context(caller, origin.context)
                if one.origin
                else bind(caller, NO_WISH, blacklist)
            ),
            chain=replace(origin.chain, deadline=self.parts.clock.monotonic() + seconds),
            labels=one.labels,
            edge="resume",
            patience=FOREVER,
            resumes=one.run,
            task=one.task,
            asker=origin.asker,
        )


def _is_for_good(error: CallRefused) -> bool:
    """Whether a guard that has tripped will trip again: it does not say when it would not."""
    return isinstance(error, GuardTripped) and error.retry_after is None


async def _agent_of(database: Reader, session: str) -> str:
    found = await SessionStore(database).get(session)
    return found.agent if found else ""
