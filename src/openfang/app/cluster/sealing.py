"""One master key for all nodes of a database: what one of them seals every other can open."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from openfang.core.errors import HomeError
from openfang.storage.state import Settings
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from openfang.host.secrets import MasterKey
    from openfang.storage.ports import Reader, Storage, Writes

_NAME: Final = "master_key"
_KEEP: Final = "INSERT INTO settings VALUES (?, ?) ON CONFLICT DO NOTHING"


def fingerprint(master: MasterKey) -> str:
    """Name a master key by what tells nothing of it."""
    return sha256(master.derive("fingerprint")).hexdigest()


async def check_key(database: Storage, writer: Writes, master: MasterKey) -> None:
    """Refuse a node with another key; the first one's holds from then on."""
    if await Settings(database).get(_NAME) is None:
        await writer.write(Unit(statements=((_KEEP, (_NAME, fingerprint(master))),)))
    await same_key(database, master)


async def same_key(database: Reader, master: MasterKey) -> None:
    """Refuse a key that is not that of the nodes, if one of them has begun."""
    ours, kept = fingerprint(master), await Settings(database).get(_NAME)
    if kept not in {None, ours}:
        raise HomeError(
            f"The database belongs to nodes with another master key ({str(kept)[:16]}; this home's "
            f"is {ours[:16]}).",
            way_out="copy master.key from a home of one of them, or name another database",
        )
