"""Going on with runs that a process began and did not end, bound to what they were bound to."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from openfang.agents.origin import read_origin
from openfang.core.agents import Ended, Ending, Message, Speaker
from openfang.core.calls import Call
from openfang.core.errors import OpenFangError
from openfang.core.keys import Key
from openfang.policy.context import NO_WISH, Wish, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openfang.agents.sessions import Interrupted, StoredSessions
    from openfang.agents.source import AgentSource
    from openfang.app.build import Parts
    from openfang.core import agents
    from openfang.core.calls import Caller, Context

_log = logging.getLogger("openfang.agents")


@dataclass(slots=True, kw_only=True)
class Resuming:
    """Takes interrupted runs up again. `interrupted` are those that are being gone on with."""

    parts: Parts
    sessions: StoredSessions
    running: Mapping[str, AgentSource]
    interrupted: dict[str, Interrupted] = field(default_factory=dict[str, "Interrupted"])

    async def resume(self, one: Interrupted) -> None:
        """Go on with a run, as whoever began it; one without its agent or its key is ended."""
        caller = self._holder(one.caller)
        if caller is None or one.agent not in self.running:
            await self._give_up(one)
            return
        self.interrupted[one.run] = one
        try:
            await self.parts.invoke(self._call(one, caller))
        except OpenFangError as error:
            _log.warning("A run of %s did not go on: %s", one.agent, error.message)
        finally:
            del self.interrupted[one.run]

    def is_safe(self, wish: agents.Wish) -> bool:
        """Whether a call may be made again though it may have been made."""
        tool = self.parts.registry.find(wish.tool)
        return tool is not None and (tool.idempotent or tool.only_reads)

    async def _give_up(self, one: Interrupted) -> None:
        ended = Ended(answer="I stopped: nobody could go on with it.", ending=Ending.FAILED)
        words = Message(speaker=Speaker.AGENT, text=ended.answer)
        await self.sessions.said(one.session, one.run, words)
        await self.sessions.end(one.session, one.run, ended, one.labels)

    def _call(self, one: Interrupted, caller: Caller) -> Call:
        message = next((turn.text for turn in one.turns if turn.speaker is Speaker.USER), "")
        origin, seconds = read_origin(one.origin), self.parts.config.guard.deadline_secs
        wish = _wish(origin.context) if one.origin else NO_WISH
        return Call(
            tool=self.running[one.agent].spec.id,
            caller=caller,
            arguments={"message": message, "session": one.session},
            context=bind(caller, wish, self.parts.config.policy.blacklist),
            chain=replace(origin.chain, deadline=self.parts.clock.monotonic() + seconds),
            labels=one.labels,
            edge="resume",
            resumes=one.run,
        )

    def _holder(self, caller: str) -> Caller | None:
        """Who began it, if the key is still in force."""
        now = self.parts.clock.time_ns()
        keys = (key for key in self.parts.keys.all() if isinstance(key, Key))
        return next(
            (
                key.caller()
                for key in keys
                if key.caller().id == caller
                and key.revoked_at is None
                and (key.expires_at is None or key.expires_at > now)
            ),
            None,
        )


def _wish(context: Context) -> Wish:
    return Wish(
        mode=context.mode,
        project_id=context.project,
        spec_hash=context.spec_hash,
        task_id=context.task_id,
        blacklist=context.blacklist,
    )
