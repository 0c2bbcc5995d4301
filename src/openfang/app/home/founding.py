"""A home on a Postgres server: begun there by the first node, joined by all others."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from openfang.app.cluster.sealing import check_key
from openfang.app.home.first_key import DEFAULT_PROJECT, first_key, is_in_force, keep
from openfang.app.home.naming import keep_name, kept_name, new_name
from openfang.audit.chain import digest
from openfang.audit.notary import Notary, statement
from openfang.core.errors import HomeError
from openfang.host.secrets import MasterKey
from openfang.storage.keys import KeyStore
from openfang.storage.postgres.address import address
from openfang.storage.postgres.database import open_storage
from openfang.storage.postgres.migrate import LOCK
from openfang.storage.postgres.writer import PostgresWriter
from openfang.storage.specs import insert_project
from openfang.storage.state import Settings, put_setting
from openfang.storage.units import Unit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from openfang.app.home.paths import Home
    from openfang.config.models import Config
    from openfang.storage.postgres.database import PostgresStorage

_FILE = "openfang.db"


def found_on_server(home: Home, config: Config) -> bool:
    """Begin or join the home of the server that is named; whether the home got a key by that.

    It runs on a loop of its own: whoever makes a home may have one already.
    """
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, _found(home, config)).result()


async def _found(home: Home, config: Config) -> bool:
    storage = await open_storage(address(config.storage.url))
    try:
        async with _one_at_a_time(storage):
            first = await Settings(storage).get("node")
            _refuse_what_would_be_lost(home, config, begun=first is not None)
            return await _joined(home, config, storage, begins=first is None)
    finally:
        await storage.aclose()


@asynccontextmanager
async def _one_at_a_time(storage: PostgresStorage) -> AsyncGenerator[None]:
    async with storage.pool.connection() as connection:
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK)
        try:
            yield
        finally:
            await connection.execute("SELECT pg_advisory_unlock($1)", LOCK)


def _refuse_what_would_be_lost(home: Home, config: Config, *, begun: bool) -> None:
    """Refuse to begin beside a home that is not moved yet, and to join without its master key."""
    if not begun and (home.path / _FILE).exists():
        raise HomeError(
            f"The server that storage.url names holds no home, but {home.path / _FILE} does.",
            way_out="take storage.url out, then: openfang storage migrate --to URL",
        )
    if begun and not config.secrets.keyring and not home.master_key.exists():
        raise HomeError(
            f"The server that storage.url names holds a home, and {home.master_key} is missing.",
            way_out="copy master.key from a node that uses this server, or name another database",
        )


async def _joined(home: Home, config: Config, storage: PostgresStorage, *, begins: bool) -> bool:
    node = config.cluster.node or kept_name(home) or new_name()
    if config.cluster.node is None:
        keep_name(home, node)
    master = MasterKey.open(home.path, keyring=config.secrets.keyring)
    keys = KeyStore(storage, master.derive("api-keys"))
    writer = PostgresWriter(address=storage.address, node=node, digest=digest)
    await writer.open()
    try:
        await check_key(storage, writer, master)
        if begins:
            begun = (put_setting("node", node), insert_project(DEFAULT_PROJECT))
            await writer.write(Unit(statements=begun))
        if await is_in_force(home, keys):
            return False
        made = await first_key(keys)
        await writer.write(made.unit)
        file = Path(config.audit.checkpoint_file)
        notary = Notary(node=node, key=master.signing_key(), file=file)
        point = notary.sign(writer.head, made.created_at)
        await writer.write(Unit(statements=(statement(point),)))
        keep(home, made)
        return True
    finally:
        await writer.aclose()
