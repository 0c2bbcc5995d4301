"""Events and the agents that they start: kept in one unit, each start once, in the same chain."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import orjson
from anyio import Lock

from openfang.agents.origin import read_origin, write_origin
from openfang.app.agents.holders import TRIGGER, Holders
from openfang.app.schedules.outcomes import KEPT, refusal
from openfang.app.schedules.starting import Errand, Errands
from openfang.app.timers import Again
from openfang.core.errors import CallRefused, NotFound, Rejected
from openfang.core.events import EVENT_PUBLISHED, Record
from openfang.core.ids import new_id
from openfang.core.labels import Labels
from openfang.core.triggers import LARGEST_PAYLOAD, Trigger
from openfang.core.values import dataclass
from openfang.policy.globs import matches
from openfang.storage import timers, triggers
from openfang.storage.timers import NEVER, Timer
from openfang.storage.units import TIMERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openfang.app.agents.running import Agents
    from openfang.app.parts import Parts
    from openfang.core.calls import Admitted
    from openfang.pipeline.tasks.service import Work
    from openfang.storage.tasks import Statement

_ROOM_AGAIN: Final = 10.0
_NOBODY: Final = "who publishes could not be found again when it starts"
_log = logging.getLogger("openfang.schedules")


@dataclass(slots=True)
class Events:
    """Where events go that are published: to the log, and to the triggers that wait for them."""

    parts: Parts
    _starting: Lock = field(default_factory=Lock)

    async def publish(self, admitted: Admitted) -> Mapping[str, Any]:
        """Put an event on record, together with the runs that it starts."""
        call, agents = admitted.call, await self._agents()
        event, kind = new_id("event"), str(call.arguments["event_type"])
        payload = call.arguments.get("payload", {})
        text = _written(payload)
        waiting = [*waiting_for(self.parts, agents, kind)]
        found_again = await Holders(self.parts, agents.running).can_find(call.caller, call.root)
        async with self._starting if waiting else nullcontext():  # each counts those before it
            now = self.parts.clock.time_ns()
            whys = [await self._held(one, now) if found_again else _NOBODY for one in waiting]
            seen = [*zip(waiting, whys, strict=True)]
            starts = [one for one, why in seen if not why]
            told = {
                "triggered": [one.name for one in starts],
                "held": [{"trigger": one.name, "reason": why} for one, why in seen if why],
            }
            published = {"id": event, "event": kind, "payload": payload}
            planned = [_timer(event, one, one.told(kind, text), admitted, now) for one in starts]
            counted = (line for one in starts for line in triggers.start(one.name, now))
            await self.parts.broker.append(
                [_published(admitted, {**published, **told})],
                (*map(timers.add, planned), *counted),
                (TIMERS,) if planned else (),
            )
        self.parts.timers.wake()
        return {"id": event, "event_type": kind, **told}

    async def _held(self, trigger: Trigger, now: int) -> str:
        """Say why a trigger does not start now: it was started too often in the last hour."""
        count = await triggers.started(self.parts.database, trigger.name, now)
        if count < trigger.per_hour:
            return ""
        return f"it was started {count} times in an hour (max_per_hour)"

    async def _agents(self) -> Agents:
        if self.parts.agents is None:
            raise NotFound("No agent is there.", way_out="openfang start")
        return await self.parts.agents.opened()


@dataclass(frozen=True, slots=True)
class Triggered:
    """Starts the agents that events are for."""

    parts: Parts
    agents: Agents

    async def run(self, timer: Timer) -> Again | None:
        """Begin the run that an event is for; the same one again is not begun twice."""
        errand = _errand(timer.id, timer.body)
        try:
            await self._errands.call(errand)
            await self._errands.begin(errand, (_kept(errand, timer.body, timer.id),))
        except CallRefused as refusal:
            await self._refused(errand, refusal.message)
        except Rejected as error:  # there is no room for tasks now
            _log.warning("A run of %s waits: %s", errand.agent, error.message)
            return Again(_ROOM_AGAIN)
        return None

    async def _refused(self, errand: Errand, why: str) -> None:
        record = refusal(errand.agent, errand.owner, errand.task_id, why)
        await self.parts.broker.append([record])

    @property
    def _errands(self) -> Errands:
        return Errands(self.parts, self.agents)

    async def never_begun(self) -> dict[str, Work]:
        """Give the work on runs that were kept, and that a killed process may not have begun."""
        sql = "SELECT subject, body FROM timers WHERE kind = ?"
        rows = await self.parts.database.read(sql, (KEPT,))
        kept = {task: orjson.loads(text) for task, text in rows}
        return {task: self._work(body) for task, body in kept.items()}

    def _work(self, body: Mapping[str, Any]) -> Work:
        return self._errands.work(_errand(body["id"], body))


def waiting_for(parts: Parts, agents: Agents, kind: str) -> Iterator[Trigger]:
    """Find the triggers that an event of this type starts: the operator's, then the manifests'."""
    for one in parts.config.triggers:
        if matches((one.event,), kind):
            yield Trigger(
                name=one.name,
                event=one.event,
                agent=one.agent,
                message=one.message,
                per_hour=one.max_per_hour,
            )
    for name, source in sorted(agents.running.items()):
        if not source.spec.life and matches(source.spec.acts.events, kind):
            yield Trigger(name=f"agent:{name}", event=kind, agent=name)


def over() -> Statement:
    """Forget what is known of runs whose tasks have ended, or are gone."""
    sql = (
        "DELETE FROM timers WHERE kind = ? AND NOT EXISTS "
        "(SELECT 1 FROM tasks WHERE tasks.id = timers.subject AND tasks.final = 0)"
    )
    return sql, (KEPT,)


def _published(admitted: Admitted, told: Mapping[str, Any]) -> Record:
    call = admitted.call
    return Record(
        event=EVENT_PUBLISHED,
        call_id=call.id,
        payload={**told, "labels": admitted.labels.names},
        context={"caller": call.caller.id, "trace_id": call.chain.trace_id},
    )


def _written(payload: object) -> str:
    text = orjson.dumps(payload).decode()
    if len(text) > LARGEST_PAYLOAD:
        raise Rejected(
            f"The payload has {len(text)} bytes; at most {LARGEST_PAYLOAD} are taken.",
            status=422,
            rule="event",
            way_out="a shorter one: put what is long into a file, and name that",
        )
    return text


def _timer(event: str, trigger: Trigger, text: str, admitted: Admitted, now: int) -> Timer:
    call = admitted.call
    body = {
        "agent": trigger.agent,
        "text": text,
        "owner": call.caller.id,
        "root": call.root,
        "origin": write_origin(call),
        "labels": admitted.labels.names,
    }
    return Timer(
        id=f"{TRIGGER}/{event}/{trigger.name}",
        kind=TRIGGER,
        subject=event,
        due=now,
        body=body,
        party=call.caller.id,
    )


def _errand(name: str, body: Mapping[str, Any]) -> Errand:
    return Errand(
        agent=body["agent"],
        text=body["text"],
        message_id=name,
        owner=body["owner"],
        root=body["root"],
        origin=read_origin(body["origin"]),
        labels=Labels.of(body["labels"]),
        edge=TRIGGER,
        granted=True,
    )


def _kept(errand: Errand, body: Mapping[str, Any], name: str) -> Statement:
    kept = {**body, "id": name}
    return timers.replace(
        Timer(
            id=f"{KEPT}/{errand.task_id}",
            kind=KEPT,
            subject=errand.task_id,
            due=NEVER,
            body=kept,
        )
    )
