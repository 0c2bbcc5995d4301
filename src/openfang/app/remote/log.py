"""The audit log of a daemon, as its client asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from openfang.app.remote.addresses import query_of
from openfang.app.remote.objects import an_object
from openfang.core.bookmarks import read_bookmark
from openfang.core.wire import read_event, read_proof, read_verification

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from openfang.app.remote.asking import Asking
    from openfang.core.bookmarks import Bookmark
    from openfang.core.events import AuditEvent
    from openfang.core.log import Proof, Search, Table, Verification

_LOG: Final = "/api/audit"


class RemoteLog:
    """What one caller reads of the log."""

    __slots__ = ()
    daemon: Asking

    async def search(self, wanted: Search) -> list[AuditEvent]:
        """Find the newest entries that match, oldest first."""
        query = query_of({name: getattr(wanted, name) or None for name in wanted.__slots__})
        return await self.daemon.get(
            f"{_LOG}{query}",
            _events,
            timeout=None,
        )

    async def heads(self) -> Bookmark:
        """Say where the log ends now."""
        return await self.daemon.get(f"{_LOG}{query_of({'limit': 1})}", _heads, timeout=None)

    def after(self, seen: int | Bookmark) -> AsyncIterator[AuditEvent]:
        """Read every entry after this one, those of each node in order."""
        return self.daemon.lines(f"{_LOG}/export{query_of({'after': seen})}", read_event)

    async def sql(self, text: str) -> list[Table]:
        """Run queries that only read: of each the columns' names and the first rows."""
        body = {"query": text or " "}  # an empty one is no query to the API
        reply = await self.daemon.reply("POST", f"{_LOG}/sql", body, timeout=None)
        return self.daemon.read(reply, _tables)

    def export(self, after: int | Bookmark) -> AsyncIterator[Mapping[str, Any]]:
        """Read the same with all that is hashed: a signed head, checkpoints, then records."""
        query = query_of({"after": after, "proven": "true"})
        return self.daemon.lines(f"{_LOG}/export{query}", an_object)

    async def prove(self, seq: int, digest: str) -> Proof:
        """Say whether the log has this record with this hash."""
        body = {"record": seq, "hash": digest}
        return self.daemon.read(await self.daemon.reply("POST", f"{_LOG}/prove", body), read_proof)

    async def verify(self) -> Verification:
        """Check the whole log against its hashes and its signed checkpoints."""
        return await self.daemon.get(f"{_LOG}/verify", read_verification, timeout=None)


def _events(body: Any) -> list[AuditEvent]:  # noqa: ANN401 - any JSON
    return [read_event(one) for one in body["records"]]


def _heads(body: Any) -> Bookmark:  # noqa: ANN401 - any JSON
    found = read_bookmark(body["end"])
    if found is None:
        raise ValueError(body["end"])
    return found


def _tables(body: Any) -> list[Table]:  # noqa: ANN401 - any JSON
    return [(one["columns"], one["rows"]) for one in body["tables"]]
