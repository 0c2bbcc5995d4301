"""Opens what keeps the state of a home: its SQLite file, or a Postgres server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfang.app.home.naming import node_of
from openfang.audit.chain import digest
from openfang.storage.database import open_home
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from openfang.app.home.paths import Home
    from openfang.config.models import Config
    from openfang.core.ports import Clock
    from openfang.storage.ports import Storage, Writes


async def open_storage(home: Home, config: Config, clock: Clock) -> tuple[Storage, Writes]:
    """Open it with its schema up to date, and whoever writes to it for this node."""
    file = config.storage.file(home.path)
    if file is None:
        return await _on_server(home, config, clock)
    database = open_home(file, durable=config.audit.fsync)
    try:
        node = await node_of(home, config, database)
        writer = Writer(
            path=file,
            node=node,
            digest=digest,
            durable=config.audit.fsync,
            now=clock.time_ns,
            database=database,
        )
    except BaseException:
        database.close()
        raise
    return database, writer


async def _on_server(home: Home, config: Config, clock: Clock) -> tuple[Storage, Writes]:
    from openfang.storage.postgres.address import address  # noqa: PLC0415 - start-up time
    from openfang.storage.postgres.database import open_storage as reach  # noqa: PLC0415 - as above
    from openfang.storage.postgres.writer import PostgresWriter  # noqa: PLC0415 - as above

    where = address(config.storage.url)
    storage = await reach(where)
    try:
        node = await node_of(home, config, storage)
        writer = PostgresWriter(address=where, node=node, digest=digest, now=clock.time_ns)
        await writer.open()
    except BaseException:
        await storage.aclose()
        raise
    return storage, writer
