"""Sessions of MCP clients among several nodes: each is on one of them, and a row says on which."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import orjson

from openfang.app.cluster.passing import Passing, Went
from openfang.core.errors import Rejected
from openfang.core.values import dataclass
from openfang.edges.mcp.context import Talk
from openfang.edges.mcp.elsewhere import Handed, Known, misdirected
from openfang.edges.mcp.ports import Place
from openfang.storage import talks
from openfang.storage.members import members
from openfang.storage.talks import TalkRow
from openfang.storage.units import Notice, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfang.app.cluster.members import Members
    from openfang.app.parts import Parts
    from openfang.edges.api.mount import Came
    from openfang.storage.members import Member
    from openfang.storage.state import Statement

    Notices: TypeAlias = tuple[Notice, ...]

TOPIC: Final = "sessions"
_SECOND: Final = 1_000_000_000
_FORGOTTEN_NS: Final = 2400 * _SECOND
_NOTED_SECONDS: Final = 300.0
_AT_ONCE: Final = 500
_MOST_PLACES: Final = 10_000
_LONGEST: Final = 64
_PATIENCE_SECONDS: Final = 20.0
# A node that died is known to be dead by then; one that still beats only cannot be reached.
_SILENT_SECONDS: Final = 15.0
_REMEMBERED_SECONDS: Final = 60.0
_BETWEEN_SECONDS: Final = 0.1
_ABSENT_SECONDS: Final = 15.0


@dataclass(slots=True)
class _Silence:
    """Since when a node that is alive cannot be reached, and when that was seen last."""

    first: float
    last: float


class Talks:
    """What this node knows of the sessions of others, and tells of its own."""

    def __init__(self, parts: Parts, members: Members) -> None:
        self._parts = parts
        self._members = members
        self._passing = Passing(parts, members)
        self._where: OrderedDict[str, str] = OrderedDict()
        self._absent: dict[tuple[str, str], float] = {}
        self._silent: dict[tuple[str, str], _Silence] = {}
        self._ours: dict[str, int] = {}
        self._ending: set[str] = set()
        self._noted = parts.clock.monotonic()
        self._told: set[str] = set()
        self._moved = anyio.Event()
        parts.database.on(TOPIC, self._hear)
        members.on_back(self._reconsider)

    async def run(self) -> None:
        """Be ready to hand requests on, until cancelled."""
        await self._passing.run()

    @property
    def leaving(self) -> bool:
        """Whether this node is to have nothing any more that another one could have."""
        return self._members.draining

    def passed(self, came: Came) -> bool:
        """Whether another node handed this request to us."""
        return self._passing.passed(came)

    # Requests

    async def hand(self, came: Came, node: str) -> Handed:
        """Have another node answer, if it is there."""
        member = await self._there(node)
        match Went.REFUSED if member is None else await self._passing.hand(came, member):
            case Went.ANSWERED:
                return Handed.ANSWERED
            case Went.LOST:
                return Handed.LOST
            case _:
                return Handed.GONE

    async def seek(self, came: Came, number: str, place: Place) -> Known | Handed | None:
        """Have the node answer that has this session, or take it over; nothing if it has ended."""
        if not number or len(number) > _LONGEST:
            return None
        passed, until = self.passed(came), self._now + _PATIENCE_SECONDS
        while (found := await self._sought(came, number, place, passed=passed)) is Handed.GONE:
            if self._now >= until:
                raise _unreached("The node that has this session does not answer.")
            await anyio.sleep(_BETWEEN_SECONDS)
        return found

    async def _sought(
        self, came: Came, number: str, place: Place, *, passed: bool
    ) -> Known | Handed | None:
        """Try it once; `GONE` means that it has to be looked for again."""
        member = self._hint(number)
        if member is None:
            row = await talks.find(self._parts.database, number)
            if row is None or not self._is_theirs(row, came.caller.id, place):
                return None
            member = await self._there(row.node)
            if member is None:
                return await self._take(row) or Handed.GONE
            self._note(number, row.node)
        if passed:
            raise misdirected()
        return await self._handed(came, number, member)

    async def _handed(self, came: Came, number: str, member: Member) -> Handed:
        key, began = (member.process, member.address), self._now
        went = await self._passing.hand(came, member)
        if went is Went.UNREACHED:
            self._unreached(member, began)
        else:
            self._silent.pop(key, None)
        match went:
            case Went.ANSWERED:
                return Handed.ANSWERED
            case Went.LOST:
                return Handed.LOST
            case Went.REFUSED:
                self._absent[key] = self._now + _ABSENT_SECONDS
            case _:
                pass
        self._where.pop(number, None)
        return Handed.GONE

    def _unreached(self, member: Member, began: float) -> None:
        """Wait for a node that does not answer once, and not with every request anew."""
        key, now = (member.process, member.address), self._now
        known = self._silent.get(key)
        if known is None or now - known.last > _REMEMBERED_SECONDS:
            known = self._silent[key] = _Silence(first=began, last=now)
        known.last = now
        if now - known.first >= _SILENT_SECONDS:
            raise _unreached(
                f"The node {member.node} has this session, is alive, and does not answer the other "
                f"nodes at {member.address}."
            )

    @property
    def _now(self) -> float:
        return self._parts.clock.monotonic()

    # Where they are

    def _hint(self, number: str) -> Member | None:
        """Find the node that had it when it was looked for last, if that is there."""
        node = self._where.get(number)
        member = None if node is None else self._members.alive().get(node)
        return None if member is None or self._is_absent(member) else member

    def _note(self, number: str, node: str) -> None:
        self._where[number] = node
        if len(self._where) > _MOST_PLACES:
            self._where.popitem(last=False)

    async def _there(self, node: str) -> Member | None:
        """Find another node, also one that has only just come."""
        if node in {"", self._members.me}:
            return None
        member = self._members.alive().get(node)
        if member is not None and not self._is_absent(member):
            return member
        for member in await members(self._parts.database):
            if member.node == node and member.present and not self._is_absent(member):
                return member
        return None

    def _is_absent(self, member: Member) -> bool:
        return self._absent.get((member.process, member.address), 0.0) > self._now

    def _is_theirs(self, row: TalkRow, caller: str, place: Place) -> bool:
        """Whether a session is this caller's, in this place, and goes on."""
        used = row.used_at >= self._parts.clock.time_ns() - _FORGOTTEN_NS
        own = (row.caller, row.toolset, row.agent) == (caller, place.toolset, place.agent)
        return used and own and row.id not in self._ending

    async def _take(self, row: TalkRow) -> Known | None:
        """Have a session from now on, unless another node was faster."""
        me, ours = self._members.me, self._ours.get(row.id)
        if row.node != me or row.generation != ours:
            taken = talks.take(row, me, self._parts.clock.time_ns())
            await self._write(taken, notices=(Notice(TOPIC, row.id),))
            found = await talks.find(self._parts.database, row.id)
            if found is None or (found.node, found.generation) != (me, row.generation + 1):
                return None
            row = found
        self._ours[row.id] = row.generation
        return _known(row)

    # What we have

    async def keep(self, known: Known) -> None:
        """Note a session of ours as it is now."""
        await self._write(talks.keep(self._row(known, self._members.me)))
        self._ours[known.id] = known.generation

    async def release(self, known: Known) -> None:
        """Let another node have a session of ours."""
        self._ours.pop(known.id, None)
        await self._write(talks.keep(self._row(known, "")))

    async def drop(self, number: str) -> None:
        """Note that a session of ours has ended."""
        self._ours.pop(number, None)
        self._ending.add(number)
        try:
            await self._write(talks.drop(number, self._members.me))
        finally:
            self._ending.discard(number)

    async def renew(self, used: Sequence[str]) -> None:
        """Note that sessions of ours are used, and forget those of anybody that are not."""
        if self._now < self._noted + _NOTED_SECONDS:
            return
        self._noted, now = self._now, self._parts.clock.time_ns()
        for at in range(0, len(used), _AT_ONCE):
            await self._write(talks.renew(used[at : at + _AT_ONCE], self._members.me, now))
        await self._write(talks.drop_unused(now - _FORGOTTEN_NS))

    async def moved(self) -> list[str]:
        """Wait until another node may have taken over some of ours, and name those that it has."""
        await self._moved.wait()
        self._moved = anyio.Event()
        told, self._told = self._told, set()
        looked = [number for number in self._ours if number in told or "" in told]
        found = await talks.strayed(self._parts.database, looked, self._members.me)
        for number in found:
            self._ours.pop(number, None)
        return found

    def _hear(self, number: str) -> None:
        self._told.add(number)
        self._moved.set()

    async def _reconsider(self) -> None:
        self._hear("")

    def _row(self, known: Known, node: str) -> TalkRow:
        return TalkRow(
            id=known.id,
            caller=known.caller,
            toolset=known.place.toolset,
            agent=known.place.agent,
            talk=_written(known.talk),
            node=node,
            generation=known.generation,
            used_at=self._parts.clock.time_ns(),
        )

    async def _write(self, *statements: Statement, notices: Notices = ()) -> None:
        await self._parts.writer.write(Unit(statements=statements, notices=notices))


def _written(talk: Talk) -> str:
    said = {
        "version": talk.version,
        "capabilities": talk.capabilities,
        "level": talk.level,
        "run": talk.run,
        "watched": sorted(talk.watched),
    }
    return orjson.dumps(said).decode()


def _known(row: TalkRow) -> Known:
    said: dict[str, Any] = orjson.loads(row.talk)
    talk = Talk(
        version=said["version"],
        capabilities=said["capabilities"],
        level=said["level"],
        lasting=True,
        run=said["run"],
        watched=set(said["watched"]),
    )
    place = Place(toolset=row.toolset, agent=row.agent)
    return Known(id=row.id, caller=row.caller, place=place, talk=talk, generation=row.generation)


def _unreached(why: str) -> Rejected:
    return Rejected(
        why,
        status=503,
        rule="node_unreached",
        way_out="begin a new session, or try again; cluster.address is where others reach a node",
    )
