"""This process among all that share its database: it beats, and it sees who no longer does.

Who could not beat for a while stops its work before others take it for dead, and goes on as another
process when it is heard again. Every process that makes calls beats; a daemon is a member as well.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
from anyio import to_thread

from openfang.app.cluster.silence import Silence
from openfang.app.cluster.takeover import Takeover
from openfang.core.errors import Conflict, HomeError, OpenFangError
from openfang.core.values import dataclass
from openfang.core.wire import moment
from openfang.storage.database import migrations
from openfang.storage.postgres.beating import CUT_SECONDS, Beating, Joining, since_boot
from openfang.storage.postgres.dialect import numbered
from openfang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from openfang.app.parts import Parts
    from openfang.storage.members import Member
    from openfang.storage.postgres.beating import Pulse, Seen
    from openfang.storage.postgres.database import PostgresStorage
    from openfang.storage.postgres.writer import PostgresWriter

Told: TypeAlias = Callable[[], None]
Back: TypeAlias = Callable[[], Awaitable[None]]
Gone: TypeAlias = Callable[[str], Awaitable[None]]

BEAT_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.25
_AGAIN_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 30.0
_log = logging.getLogger("openfang.cluster")


@dataclass(slots=True, kw_only=True)
class Members:
    """Who is there. `draining` is whether this node takes nothing new, `cut` whether it may work.

    `taking_over` is what is done for those that are gone; a command leaves that to daemons.
    """

    parts: Parts
    beating: Beating
    pulse: Pulse
    draining: bool = False
    cut: bool = False
    taking_over: Takeover = field(init=False)
    _beside: TaskGroup = field(init=False)
    _me: Joining | None = field(init=False, default=None)
    _members: Mapping[str, Member] = field(init=False, default_factory=dict[str, "Member"])
    _silence: Silence = field(init=False, default_factory=Silence)
    _before: dict[str, frozenset[str]] = field(
        init=False, default_factory=dict[str, frozenset[str]]
    )
    _on_cut: list[Told] = field(init=False, default_factory=list[Told])
    _on_back: list[Back] = field(init=False, default_factory=list[Back])
    _on_drain: list[Told] = field(init=False, default_factory=list[Told])

    def __post_init__(self) -> None:
        self.taking_over = Takeover(self.parts)

    @property
    def me(self) -> str:
        """This node's name."""
        return self.parts.writer.node

    @property
    def state(self) -> str:
        """Why this node takes no calls, if it takes none."""
        if self._me is None:
            return "starting"
        if self.cut:
            return "cut off from the database"
        return "draining" if self.draining else ""

    def alive(self) -> Mapping[str, Member]:
        """Give the members that beat, by name, as they were two seconds ago or later."""
        return {name: one for name, one in self._members.items() if one.present}

    def lost(self, member: Member) -> bool:
        """Whether one that was there is known to be gone; of who has only just come none is."""
        found = self._members.get(member.node)
        if found is None:
            return False
        if found.process == member.process:
            return not found.present
        return found.started_at > member.started_at

    def on_gone(self, hear: Gone) -> None:
        """Hear of a member that is dead, on the one node that sees to what it left."""
        self.taking_over.hears.append(hear)

    def on_cut(self, hear: Told) -> None:
        """Hear that this node was out of reach for too long: stop what only one may do."""
        self._on_cut.append(hear)

    def on_back(self, hear: Back) -> None:
        """Hear that it can be reached again, and goes on as another process."""
        self._on_back.append(hear)

    def on_drain(self, hear: Told) -> None:
        """Hear that it begins or ends to drain, which `draining` tells."""
        self._on_drain.append(hear)

    async def join(self, address: str) -> None:
        """Be a member from now on, unless another node beats under this name."""
        await self._begin()
        known = await to_thread.run_sync(migrations, "postgres")
        process = self.parts.broker.process
        me = Joining(self.me, process.id, __version__, known[-1][0], address)
        while not await self.beating.join(me, await self._ours()):
            await self._outwait(await self.beating.named(self.me))
        self.pulse.beat(since_boot())
        self._me = me

    async def _ours(self) -> list[str]:
        """Name the process that has our name, if it is one of this home that is gone."""
        found = await self.beating.named(self.me)
        process = self.parts.broker.process
        asked = () if found is None else (found.process,)
        return [*await process.roll.gone(asked), *process.former]

    async def _outwait(self, found: Member | None) -> None:
        """Wait until whoever has the name is dead; one that beats meanwhile has it."""
        while found is not None and found.present:
            await anyio.sleep(_LOOK_SECONDS)
            later = await self.beating.named(self.me)
            if later is not None and later.silent < found.silent:
                raise Conflict(
                    f"Another node beats under the name {self.me}: it is at {later.address} since "
                    f"{moment(later.started_at)}.",
                    way_out="name this one otherwise: cluster.node, OPENFANG_NODE or HOME/node",
                )
            found = later

    async def moved(self, address: str) -> None:
        """Say where this node is reached, before it serves anybody."""
        if self._me is not None:
            self._me = self._me._replace(address=address)
            sql = "UPDATE members SET address = $1 WHERE node = $2 AND process = $3"
            await self.beating.run(sql, address, self._me.node, self._me.process)

    async def run(self) -> None:
        """Beat until cancelled; nothing that takes long is done in between two beats."""
        try:
            async with anyio.create_task_group() as self._beside:
                self._beside.start_soon(self.taking_over.run)
                while True:
                    pause = await self._turn() if self._beats else BEAT_SECONDS
                    await anyio.sleep(pause)
        finally:
            if not (self.cut or self.pulse.lost):  # else others may have written our endings
                self.pulse.until = float("inf")  # what is left is the end, in good order

    @property
    def _beats(self) -> bool:
        return self.cut or self.parts.broker.process.known

    async def _turn(self) -> float:
        """Beat and look; return how long to wait until the next time."""
        self._see_cut()
        began = since_boot()
        left = BEAT_SECONDS if self.cut else max(0.1, self.pulse.until - began)
        try:
            seen = await self._seen(min(BEAT_SECONDS, left))
            await self._heard(seen, began)
        except HomeError as error:
            _log.warning("This node is not heard: %s", error.message)
            self._silence.lost()
            self._see_cut()
            return _LOOK_SECONDS
        return BEAT_SECONDS

    async def _seen(self, seconds: float) -> Seen:
        return await self.beating.turn(self._me, self._ours_now, seconds)

    @property
    def _ours_now(self) -> tuple[str, ...]:
        """What this process is, and those that it was whose calls have not all ended."""
        return self.parts.broker.process.id, *self._before

    def _see_cut(self) -> None:
        if self.pulse.lost and not self.cut:
            _log.error("Cut off from the database for %g s: the work stops here", CUT_SECONDS)
            self._cut_off()

    def _cut_off(self) -> None:
        self.cut = True
        self.pulse.until = 0.0
        self._silence.lost()
        for hear in self._on_cut:
            hear()

    async def _heard(self, seen: Seen, began: float) -> None:
        if self.cut or self.parts.broker.process.id not in seen.ours:
            await self._back()
            return
        if seen.draining is None:
            await self._join_again()
        self.pulse.beat(began)
        self._members = {one.node: one for one in seen.members}
        self._drain(on=bool(seen.draining))
        self._look(seen)
        await self._end_former()

    def _look(self, seen: Seen) -> None:
        now, me = since_boot(), self.parts.broker.process
        self._silence.look(seen.unended, now)
        if self._me is None or self._leaves_it_to_others:
            return
        served = {member.process for member in seen.members}
        ours = [one for one in seen.unended if one.heir == me.id]
        for one in (*self._silence.left(seen.unended, now), *ours):
            if one.id not in {me.id, *self._before}:
                self.taking_over.want(one, member=one.id in served)

    @property
    def _leaves_it_to_others(self) -> bool:
        """Whether this node drains, and another one is there that does not."""
        return self.draining and any(one.state == "alive" for one in self._members.values())

    def _drain(self, *, on: bool) -> None:
        if on != self.draining:
            self.draining = on
            for hear in self._on_drain:
                hear()

    async def _back(self) -> None:
        """Go on as another process: what this one had under way was stopped, or is another's."""
        if not self.cut:
            _log.error("Others took this node for dead: the work stops here")
            self._cut_off()
        await self.taking_over.stopped(_STOP_SECONDS)
        writer = cast("PostgresWriter", self.parts.writer)
        await writer.drain()
        writer.hang_up()
        await self._renew()
        began = since_boot()
        await self._begin()
        await self._join_again()
        self.pulse.beat(began)
        self.cut = False
        _log.warning("Heard again, as %s", self.parts.broker.process.id)
        for hear in self._on_back:
            self._beside.start_soon(self._go_on, hear)

    async def _renew(self) -> None:
        """Be another process. To stop took its time: so it is seen now whose our calls are.

        Who is another one already, and could not say so, stays that.
        """
        broker, seen = self.parts.broker, await self._seen(BEAT_SECONDS)
        if broker.process.known:
            before = broker.process.renew()
            self._before[before] = broker.open
        if not seen.ours.issuperset(self._before):
            for process in self._before:
                broker.hand_over(process)
            self._before.clear()

    async def _go_on(self, hear: Back) -> None:
        """Let one go on, beside the beats: until it has, or this is another process again."""
        me = self.parts.broker.process.id
        while self.parts.broker.process.id == me:
            try:
                await hear()
            except (OSError, OpenFangError) as error:
                _log.warning("Something does not go on yet: %s", error)
                await anyio.sleep(_AGAIN_SECONDS)
            else:
                break

    async def _begin(self) -> None:
        """Make this process known, for it has to beat."""
        process = self.parts.broker.process
        if not process.known:
            sql, given = process.begin(self.parts.broker.low_water)
            await self.beating.run(numbered(sql), *given)
            process.known = True

    async def _join_again(self) -> None:
        if self._me is None:
            return
        process = self.parts.broker.process
        self._me = self._me._replace(process=process.id)
        if not await self.beating.join(self._me, [process.id, *process.former], again=True):
            raise Conflict(
                f"Another node has taken the name {self.me} meanwhile.",
                way_out="end that one, or name this one otherwise: cluster.node",
            )

    async def _end_former(self) -> None:
        """End what this process was before, once the last of its calls has ended."""
        broker = self.parts.broker
        for process, calls in list(self._before.items()):
            if broker.have_ended(calls):
                sql, given = broker.process.roll.end(process)
                await self.beating.run(numbered(sql), *given)
                del self._before[process]

    async def stopping(self) -> None:
        """Say that this node ends: it takes nothing new, and others take what only one may have."""
        self._drain(on=True)
        await self._tell("draining = 1")

    async def leave(self) -> None:
        """Say that this node has ended in good order."""
        await self._tell("left_at = clock_ns()")
        self._me = None

    async def _tell(self, change: str) -> None:
        if self._me is None:
            return
        sql = f"UPDATE members SET {change} WHERE node = $1 AND process = $2"  # noqa: S608 - constants
        try:
            await self.beating.run(sql, self._me.node, self._me.process)
        except HomeError as error:
            _log.warning("The other nodes do not hear that this one ends: %s", error.message)


def open_members(parts: Parts) -> Members:
    """Put together what this process is to the others."""
    writer = cast("PostgresWriter", parts.writer)
    members = Members(parts=parts, beating=Beating(writer.address), pulse=writer.pulse)
    members.on_cut(cast("PostgresStorage", parts.database).pool.drop_idle)
    members.on_cut(parts.tasks.interrupt)
    members.on_back(parts.tasks.go_on)

    def drains() -> None:
        parts.tasks.drain(on=members.draining)
        parts.timers.resting = members.draining
        parts.timers.wake()

    members.on_drain(drains)
    if parts.agents is not None:
        members.on_cut(parts.agents.interrupt)
        members.on_back(parts.agents.go_on)
    return members
