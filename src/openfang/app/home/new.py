"""How a new home is made."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import closing, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from openfang.app.home.naming import new_name
from openfang.app.home.paths import Home
from openfang.app.home.resting import at_rest
from openfang.audit.chain import digest
from openfang.audit.notary import Notary, statement
from openfang.config.load import load
from openfang.core.calls import Role
from openfang.core.errors import HomeError
from openfang.core.events import KEY_CREATED
from openfang.core.ids import new_id
from openfang.core.keys import Key
from openfang.host.private import write_private
from openfang.host.secrets import MasterKey
from openfang.storage.database import at_once, open_home
from openfang.storage.keys import KEY_PREFIX, KeyStore, new_secret
from openfang.storage.specs import insert_project
from openfang.storage.state import Settings, put_setting
from openfang.storage.units import Line, Unit
from openfang.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from openfang.config.models import Config
    from openfang.storage.database import Database

DEFAULT_PROJECT = "default"
_FIRST_CONFIG = """\
# OpenFang. Every key with its default: openfang config schema
# What is written here is strict: an unknown key or a wrong type stops the start.

[policy]
profile = "guided"  # "seed": the six gates as they stand
"""


class Made(IntEnum):
    """What `init_home` had to do; false if nothing."""

    NOTHING = 0
    HOME = 1
    KEY = 2


def init_home(path: Path, environ: Mapping[str, str]) -> tuple[Home, Made]:
    """Make a home, finish one that is half made, or replace a key file that opens nothing."""
    home = Home(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        with _one_at_a_time(path):
            if not home.config_file.exists():
                write_private(home.config_file, _FIRST_CONFIG)
            made = _found(home, load(path, environ))
    except OSError as error:
        raise HomeError(
            f"The home {path} cannot be made: {error.strerror}.",
            way_out="set OPENFANG_HOME to a folder that you may write to",
        ) from error
    return home, made


@contextmanager
def _one_at_a_time(path: Path) -> Generator[None]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _found(home: Home, config: Config) -> Made:
    """Give the home its node, its first project and its first key, each only once."""
    if config.storage.file(home.path) is None:
        return _on_server(home, config)
    database = open_home(home.database(config))
    try:
        node = at_once(Settings(database).get("node"))
        if node is None:
            node = new_name()
            _write_agents(home)
            database.connection.execute(*put_setting("node", node))
        else:
            require_master_key(home, config)
        database.connection.execute(*insert_project(DEFAULT_PROJECT))
        master = MasterKey.open(home.path, keyring=config.secrets.keyring)
        checkpoints = Path(config.audit.checkpoint_file)
        notary = Notary(node=node, key=master.signing_key(), file=checkpoints)
        keys = KeyStore(database, master.derive("api-keys"))
        return _key_file(home, database.path, keys, notary)
    finally:
        database.close()


def _on_server(home: Home, config: Config) -> Made:
    """See whether a home was moved to the server that it names: there nothing is begun."""
    require_master_key(home, config)
    with closing(at_rest(home, config)) as database:
        settings = at_once(_settings(database))
    if not settings:
        raise HomeError(
            "The server that storage.url names holds no home.",
            way_out="make one on SQLite, then: openfang storage migrate --to URL",
        )
    return Made.NOTHING


async def _settings(database: Database) -> str | None:
    """The node whose home it is; of a server that was never written to, none."""
    there = await database.read("SELECT 1 FROM pg_tables WHERE tablename = 'settings'")
    return await Settings(database).get("node") if there else None


def _write_agents(home: Home) -> None:
    from openfang.app.agents.starters import write_starters  # noqa: PLC0415 - only a new home needs it

    write_starters(home.path)


def _key_file(home: Home, file: Path, keys: KeyStore, notary: Notary) -> Made:
    """See to it that the key file holds a key that is in force; one that does not is kept."""
    made = Made.HOME
    if home.key_file.exists():
        secret = home.key_file.read_text("utf-8", errors="surrogateescape").strip()
        if at_once(keys.find_key(secret)) is not None:
            return Made.NOTHING
        home.key_file.replace(home.old_key_file)
        made = Made.KEY
    _first_key(home, file, keys, notary)
    return made


def require_master_key(home: Home, config: Config) -> None:
    """Refuse to go on without the key that everything was derived from."""
    if not config.secrets.keyring and not home.master_key.exists():
        raise HomeError(
            f"{home.master_key} is missing: keys, secrets and checkpoints depend on it.",
            way_out="restore it from a backup of the home",
        )


def _first_key(home: Home, file: Path, keys: KeyStore, notary: Notary) -> None:
    """Make an administrator's key, on record like any other, and sign the log that it begins."""
    names = {key.name for key in at_once(keys.all())}
    name = "admin" if "admin" not in names else f"admin-{secrets.token_hex(3)}"
    key = Key(
        id=new_id("key"),
        name=name,
        role=Role.ADMIN,
        projects=(DEFAULT_PROJECT,),
        created_at=time.time_ns(),
    )
    secret = new_secret(KEY_PREFIX)
    payload = orjson.dumps({"key": key.id, "name": name, "role": "admin", "by": "init"}).decode()
    line = Line(KEY_CREATED, "info", "", "", payload, "{}")
    writer = Writer(path=file, node=notary.node, digest=digest)
    try:
        writer.write_blocking(Unit((line,), (keys.insert_key(key, secret),)))
        point = notary.sign(writer.head, key.created_at)
        writer.write_blocking(Unit(statements=(statement(point),)))
    finally:
        writer.close()
    write_private(home.key_file, secret + "\n")
