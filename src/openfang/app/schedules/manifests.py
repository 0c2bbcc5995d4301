"""Schedules that manifests ask for: made, changed and deleted as the manifests are."""

from __future__ import annotations

import logging
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from openfang.agents.spec import ONLY_ASKED, Acts
from openfang.app.schedules.book import added, changed, first_due
from openfang.app.schedules.outcomes import MOST_REFUSALS
from openfang.core.errors import OpenFangError
from openfang.core.schedules import Schedule, ScheduleState
from openfang.core.triggers import conditions
from openfang.core.values import dataclass
from openfang.storage import schedules
from openfang.storage.asked import SCHEDULES, AskedFor
from openfang.storage.schedules import ScheduleStore
from openfang.storage.units import TIMERS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from openfang.agents.spec import AgentSpec
    from openfang.app.parts import Parts
    from openfang.config.manifest_models import Manifest
    from openfang.storage.tasks import Statement

_BY: Final = "manifest"
_log = logging.getLogger("openfang.schedules")


@dataclass(frozen=True, slots=True)
class Manifested:
    """Keeps the schedules of agents that have one in their manifest."""

    parts: Parts

    async def follow(self, specs: Iterable[AgentSpec]) -> None:
        """Make what is new, forget what no node asks for, and begin anew what is another."""
        wanted = {one.id: one for spec in specs if (one := self._wanted(spec)) is not None}
        known = {one.id: one for one in await ScheduleStore(self.parts.database).of_manifests()}
        for name in wanted.keys() | known.keys() - await self._elsewhere(wanted, known):
            try:
                await self._one(known.get(name), wanted.get(name))
            except OpenFangError as error:
                _log.error("The schedule of a manifest is not kept: %s", error.message)

    async def _elsewhere(self, wanted: Collection[str], known: Collection[str]) -> frozenset[str]:
        """Name what other nodes ask for; as long as that cannot be known, it may be anything."""
        asked = AskedFor(self.parts.database, self.parts.writer)
        try:
            await asked.say(SCHEDULES, wanted)
            return await asked.elsewhere(SCHEDULES)
        except OpenFangError as error:
            _log.warning("What other nodes ask for is not known: %s", error.message)
            return frozenset(known)

    async def _one(self, before: Schedule | None, after: Schedule | None) -> None:
        if before is not None and after is not None and _same(before, after):
            return
        if before is not None:
            await self._write(before, "deleted", *schedules.delete(before))
        if after is not None:
            least = self.parts.config.schedules.min_interval_secs
            planned = await to_thread.run_sync(first_due, after, least)
            new = _carried(before, planned)
            await self._write(new, "created", *added(new))

    async def _write(self, schedule: Schedule, act: str, *statements: Statement) -> None:
        await self.parts.broker.append([changed(schedule, act, _BY)], statements, (TIMERS,))
        self.parts.timers.wake()

    def _wanted(self, spec: AgentSpec) -> Schedule | None:
        if not spec.acts.schedule:
            return None
        digest = sha256(f"manifest of {spec.name}".encode()).hexdigest()[:32]
        return Schedule(
            id=f"schedule_{digest}",
            owner=spec.id,
            root=spec.id,
            agent=spec.name,
            description=spec.description,
            message=spec.acts.message,
            schedule=spec.acts.schedule,
            timezone=self.parts.config.schedules.timezone,
            of_manifest=True,
            created_at=self.parts.clock.time_ns(),
        )


def acts_of(manifest: Manifest) -> Acts:
    """Say what a manifest lets its agent do without being asked."""
    way, autonomous = manifest.schedule, manifest.autonomous
    quiet = autonomous.quiet_hours if autonomous else None
    if isinstance(way, str):
        return ONLY_ASKED
    if way.periodic:
        schedule = way.periodic.cron
    elif way.continuous:
        schedule = f"every {max(1, round(way.continuous.check_interval_secs))} seconds"
    else:
        schedule = ""
    return Acts(
        schedule=schedule,
        message=manifest.description or "Do what you are for.",
        events=conditions(way.proactive.conditions) if way.proactive else (),
        quiet=quiet or "",
    )


def _carried(before: Schedule | None, after: Schedule) -> Schedule:
    """Keep of what was there how it went, and that somebody has paused it."""
    if before is None:
        return after
    if before.state is ScheduleState.PAUSED and before.refusals < MOST_REFUSALS:
        after = replace(after, state=before.state, reason=before.reason, due=0)
    return replace(after, last=before.last)


def _same(one: Schedule, other: Schedule) -> bool:
    def asked(schedule: Schedule) -> tuple[str, ...]:
        named = (schedule.description, schedule.message, schedule.schedule, schedule.timezone)
        return *named, schedule.agent

    return asked(one) == asked(other)
