"""One try to commit a group: how far it got, and whether it may be made again.

What broke before the commit was sent has left nothing. Of what broke after it nobody can tell by
itself; but a group that has records is known by the last of them, whose number only one can have.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from openfang.core.values import dataclass
from openfang.storage.postgres.errors import is_lost, is_taken, meaning, sqlstate
from openfang.storage.postgres.group import insert, statements
from openfang.storage.units import GENESIS, Head

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from openfang.storage.jobs import Job
    from openfang.storage.postgres.address import Address
    from openfang.storage.postgres.group import Group
    from openfang.storage.units import Written

_BEGIN: Final = "BEGIN ISOLATION LEVEL SERIALIZABLE"
_HEAD: Final = "SELECT seq, hash FROM audit WHERE node = $1 ORDER BY seq DESC LIMIT 1"
_THERE: Final = "SELECT 1 FROM audit WHERE node = $1 AND seq = $2 AND hash = $3"
_ROLLED_BACK: Final = "40"


def _anybody() -> None:
    """Nobody takes us for dead."""


class Refused(Exception):  # noqa: N818 - it reads as what it is
    """The server refused something; the connection goes on."""


@dataclass(slots=True)
class Attempt:
    """Commits a group behind a head. `behind` is the head after it.

    `check` raises if this process may write no more; it is asked when nothing is left but to write.
    """

    group: Group
    check: Callable[[], None] = _anybody
    behind: Head = GENESIS
    unsure: bool = False
    """Whether the commit was sent, and nothing came back."""
    process: int = 0
    """The server's process that was told to commit it."""
    _lines: bool = field(init=False, default=False)
    _began: bool = field(init=False, default=False)
    _outcomes: list[tuple[Written, Exception | None]] = field(
        init=False, default_factory=list["tuple[Written, Exception | None]"]
    )
    _sent: int = field(init=False, default=0)

    @property
    def may_be_repeated(self) -> bool:
        """Whether it left nothing, or can be known by its records if it left something."""
        return not self.unsure or self._lines

    def take_count(self) -> int:
        """How many statements were sent since this was asked last."""
        count, self._sent = self._sent, 0
        return count

    async def at_once(self, connection: Any, head: Head) -> Head:  # noqa: ANN401 - the driver has no types
        """Commit all units behind a head, as if nothing could go wrong."""
        rows, self.behind = self.group.chained(self.group.jobs, head)
        self._lines = bool(rows)
        changes = self.group.statements
        if not changes:
            if rows:
                self.check()
                self._note(connection)
                await self._execute(connection, *insert(rows))  # one statement is a transaction
                self.unsure = False
            return self.behind
        await self._begin(connection)
        for sql, parameters in changes:
            await self._execute(connection, sql, parameters)
        if rows:
            await self._execute(connection, *insert(rows))
        await self._commit(connection)
        return self.behind

    async def one_by_one(self, connection: Any, address: Address) -> Head:  # noqa: ANN401 - as above
        """Commit those units that can be, behind the head that there is.

        One process of a node at a time does it, so that they do not take each other's numbers.
        """
        node = self.group.node
        await self._execute(connection, "SELECT pg_advisory_lock(hashtextextended($1, 0))", (node,))
        try:
            await self._begin(connection)
            row = await connection.fetchrow(_HEAD, node)
            head = first = Head(row[0], row[1]) if row else GENESIS
            for job in self.group.jobs:
                head = await self._apply(connection, address, job, head)
            self.behind, self._lines = head, head != first
            await self._commit(connection)
        except Exception as error:
            await self.undo(connection, error)
            raise
        else:
            return head
        finally:
            if not connection.is_closed():
                unlock = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
                await connection.execute(unlock, node)

    async def _apply(
        self,
        connection: Any,  # noqa: ANN401 - as above
        address: Address,
        job: Job,
        head: Head,
    ) -> Head:
        """Apply one unit inside the group; a unit that cannot be applied fails alone."""
        job.error = None
        await self._execute(connection, "SAVEPOINT unit")
        try:
            for sql, parameters in statements([job]):
                await self._execute(connection, sql, parameters)
            rows, behind = self.group.chained([job], head)
            if rows:
                await self._execute(connection, *insert(rows))
        except Exception as error:
            if not _is_units(connection, error):
                raise
            job.error = meaning(address, error)
            behind = head
            await self._execute(connection, "ROLLBACK TO SAVEPOINT unit")
        await self._execute(connection, "RELEASE SAVEPOINT unit")
        return behind

    async def undo(self, connection: Any, error: Exception) -> None:  # noqa: ANN401 - as above
        """Leave nothing behind. If the connection is lost that is what the server does."""
        if is_lost(error) or connection.is_closed():
            raise error
        self.unsure = False  # the server said no
        if self._began:
            self._began = False
            await connection.execute("ROLLBACK")

    async def is_there(self, connection: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the last record that it would have written stands in the log."""
        place = (self.group.node, self.behind.seq, self.behind.hash)
        return await connection.fetchval(_THERE, *place) is not None

    def recall(self) -> None:
        """Tell each unit where this attempt put it, whatever was tried since."""
        for job, (written, error) in zip(self.group.jobs, self._outcomes, strict=True):
            job.written, job.error = written, error

    def _note(self, connection: Any) -> None:  # noqa: ANN401 - as above
        self.process = connection.get_server_pid()
        self._outcomes = [(job.written, job.error) for job in self.group.jobs]
        self.unsure = True

    async def _begin(self, connection: Any) -> None:  # noqa: ANN401 - as above
        self._began = True
        await self._execute(connection, _BEGIN)

    async def _commit(self, connection: Any) -> None:  # noqa: ANN401 - as above
        self.check()
        self._note(connection)
        await self._execute(connection, "COMMIT")
        self.unsure = self._began = False

    async def _execute(self, connection: Any, sql: str, parameters: Sequence[Any] = ()) -> None:  # noqa: ANN401 - as above
        self._sent += 1
        await connection.execute(sql, *parameters)


def _is_units(connection: Any, error: Exception) -> bool:  # noqa: ANN401 - as above
    """Whether it is the unit's own fault, and not the connection's or another one's."""
    if is_lost(error) or connection.is_closed() or is_taken(error):
        return False
    return not sqlstate(error).startswith(_ROLLED_BACK)
